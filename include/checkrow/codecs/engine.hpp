// Which instructions the quantizing codecs use. All engines write and read the same bytes.
#pragma once

#include <atomic>
#include <checkrow/version.hpp>
#include <cstdint>

namespace checkrow::inline v0 {

/// What encodes and decodes the rows of quantized columns. Nothing but speed depends on it.
enum class codec_engine : std::uint8_t {
  automatic,  ///< the fastest that this CPU has
  scalar,     ///< portable C++
  avx2,       ///< x86-64 with AVX2, FMA and F16C
  avx512,     ///< x86-64 with AVX-512 F, BW, DQ, VL, VBMI and VNNI: Ice Lake, Zen 4, and later
  neon,       ///< 64-bit Arm
};

/// All that a CPU may have, the portable one first.
inline constexpr codec_engine codec_engines[] = {codec_engine::scalar, codec_engine::avx2,
                                                 codec_engine::avx512, codec_engine::neon};

namespace detail {

inline std::atomic<codec_engine> chosen_engine{codec_engine::automatic};

#if defined(__x86_64__)
/// Every CPU with AVX2 has it, but a virtual machine may hide it. (clang 14 has no name for it.)
[[nodiscard]] inline bool cpu_has_f16c() noexcept {
  unsigned a = 1, b = 0, c = 0, d = 0;
  asm("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (c >> 29 & 1) != 0;
}
#endif

[[nodiscard]] inline codec_engine fastest_engine() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!cpu_has_f16c()) return codec_engine::scalar;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni"))
    return codec_engine::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return codec_engine::avx2;
#elif defined(__aarch64__)
  return codec_engine::neon;
#endif
  return codec_engine::scalar;
}

}  // namespace detail

/// Does this CPU have it? (All have `automatic` and `scalar`; AVX-512 implies AVX2.)
[[nodiscard]] inline bool has_codec_engine(codec_engine engine) noexcept {
  static const codec_engine fastest = detail::fastest_engine();
  if (engine == codec_engine::avx2 && fastest == codec_engine::avx512) return true;
  return engine == fastest || engine == codec_engine::automatic || engine == codec_engine::scalar;
}

/// The engine in use, never `automatic`.
[[nodiscard]] inline codec_engine current_codec_engine() noexcept {
  static const codec_engine fastest = detail::fastest_engine();
  const codec_engine chosen = detail::chosen_engine.load(std::memory_order_relaxed);
  return chosen == codec_engine::automatic ? fastest : chosen;
}

/// Makes all codecs of this program use that engine, from their next call on; any thread may ask. False, and
/// nothing changed, where this CPU does not have it.
inline bool use_codec_engine(codec_engine engine) noexcept {
  if (!has_codec_engine(engine)) return false;
  detail::chosen_engine.store(engine, std::memory_order_relaxed);
  return true;
}

}  // namespace checkrow::inline v0
