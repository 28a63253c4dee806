// Arithmetic that gives the same bits whatever the compiler flags: pragmas, the float environment, bit
// tricks.
//
// Everything that computes on row elements stands between CHECKROW_CANONICAL_BEGIN and _END, in functions
// that are not templates: gcc applies the pragma to a function where it is defined, not where it is
// instantiated. Those that are entered from code outside are noinline, so that no arithmetic moves across the
// switch of the float environment; those that are always_inline are called in here only, since elsewhere they
// would be compiled by their caller's flags.
#pragma once

#include <bit>
#include <checkrow/version.hpp>
#include <cstddef>
#include <cstdint>

#if defined(__i386__) && !defined(__SSE2_MATH__)
#error "checkrow: x87 arithmetic has excess precision; compile with -msse2 -mfpmath=sse"
#endif

// No fast-math, no contraction of a * b + c. A float sum is written in the order that it is meant in, and a
// fused multiply-add is always spelled out. (gcc's -O2 vectorizes too little: its loops get the cost model of
// -O3.)
#if defined(__clang__) && defined(__aarch64__) && __clang_major__ < 16
#if defined(__FAST_MATH__)
#error \
    "checkrow: clang before 16 has no pragma that switches fast-math off on Arm; compile without -ffast-math"
#endif
#define CHECKROW_CANONICAL_BEGIN _Pragma("clang fp contract(off)")
#define CHECKROW_CANONICAL_END
#elif defined(__clang__)
#define CHECKROW_CANONICAL_BEGIN \
  _Pragma("float_control(push)") _Pragma("float_control(precise, on)") _Pragma("clang fp contract(off)")
#define CHECKROW_CANONICAL_END _Pragma("float_control(pop)")
#elif defined(__GNUC__)
// clang-format off
#define CHECKROW_CANONICAL_BEGIN                                        \
  _Pragma("GCC push_options")                                           \
  _Pragma("GCC optimize(\"no-fast-math,no-unsafe-math-optimizations\")") \
  _Pragma("GCC optimize(\"no-associative-math,no-reciprocal-math\")")    \
  _Pragma("GCC optimize(\"no-finite-math-only,signed-zeros\")")          \
  _Pragma("GCC optimize(\"fp-contract=off\")")                           \
  _Pragma("GCC optimize(\"tree-vectorize,vect-cost-model=dynamic\")")
// clang-format on
#define CHECKROW_CANONICAL_END _Pragma("GCC pop_options")
#else
#error "checkrow: this compiler is not known to have a pragma that switches fast-math off; see this header"
#endif

namespace checkrow::inline v0::detail {

/// While it lives, this thread rounds to nearest and keeps denormals (no FTZ, no DAZ, no traps).
class default_float_environment {
 public:
#if defined(__x86_64__) || defined(__i386__)
  default_float_environment() noexcept : before_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(0x1f80); }
  ~default_float_environment() { __builtin_ia32_ldmxcsr(before_); }
#elif defined(__aarch64__)
  default_float_environment() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}) : "memory");
  }
  ~default_float_environment() { asm volatile("msr fpcr, %0" : : "r"(before_) : "memory"); }
#else
  default_float_environment() noexcept = default;
#endif
  default_float_environment(const default_float_environment&) = delete;
  default_float_environment& operator=(const default_float_environment&) = delete;

 private:
#if defined(__aarch64__)
  std::uint64_t before_ = 0;
#else
  [[maybe_unused]] unsigned before_ = 0;
#endif
};

CHECKROW_CANONICAL_BEGIN

/// One row of float32, `width` of them, at any alignment.
struct float_row {
  const std::byte* bytes;
  std::size_t width;

  [[nodiscard]] std::uint32_t bits(std::size_t i) const noexcept {
    std::uint32_t element;
    __builtin_memcpy(&element, bytes + 4 * i, 4);
    return element;
  }
  [[nodiscard]] float operator[](std::size_t i) const noexcept {
    float element;
    __builtin_memcpy(&element, bytes + 4 * i, 4);
    return element;
  }
  /// Up to `length` elements from `first` on.
  [[nodiscard]] float_row block(std::size_t first, std::size_t length) const noexcept {
    return {bytes + 4 * first, width - first < length ? width - first : length};
  }
};

[[nodiscard]] inline std::uint32_t bits_of(float value) noexcept {
  return __builtin_bit_cast(std::uint32_t, value);
}
[[nodiscard]] inline float float_of(std::uint32_t bits) noexcept { return __builtin_bit_cast(float, bits); }

/// Maps the bits of a float to an integer of the same order, -0 below +0, NaN outermost; and back.
[[nodiscard]] inline std::int32_t order_key(std::int32_t bits) noexcept {
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

/// RN(a * b + c), one rounding, in plain double arithmetic: a * b is exact there, and the sum is rounded to
/// odd, so that the rounding to float is the only one that counts. Vectorizes, and needs neither FMA nor
/// libm.
[[nodiscard, gnu::always_inline]] inline float fused(float a, float b, float c) noexcept {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = static_cast<double>(c);
  const double sum = product + addend;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);
  const auto bits = __builtin_bit_cast(std::int64_t, sum);
  const bool above = error > 0, below = error < 0;  // neither where the sum is exact, or not finite
  const std::int64_t outward = above != (bits < 0) ? 1 : -1;
  const std::int64_t step = (above || below) && (bits & 1) == 0 ? outward : 0;
  return static_cast<float>(__builtin_bit_cast(double, bits + step));
}

/// Half to even, for |value| <= 2^22.
[[nodiscard]] inline float round_even(float value) noexcept {
  constexpr float shifter = 12582912.0f;  // 1.5 * 2^23: the sum keeps no fraction bits
  return (value + shifter) - shifter;
}

/// round_even(value) as an integer, for 0 <= value <= 255.
[[nodiscard]] inline std::uint8_t round_to_code(float value) noexcept {
  return static_cast<std::uint8_t>(bits_of(value + 12582912.0f));
}

/// Rounds a positive float to so many significant bits, half to even; infinity stays infinity.
[[nodiscard]] inline float round_significant(float value, int significant) noexcept {
  const int dropped = 24 - significant;
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t half = (1u << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
  return float_of((bits + half) >> dropped << dropped);
}

/// numerator / denominator, half to even; denominator > 0.
[[nodiscard]] inline std::int64_t divide_even(std::int64_t numerator, std::int64_t denominator) noexcept {
  std::int64_t quotient = numerator / denominator;
  std::int64_t rest = numerator % denominator;
  if (rest < 0) {
    rest += denominator;
    --quotient;
  }
  const bool up = 2 * rest > denominator || (2 * rest == denominator && (quotient & 1) != 0);
  return quotient + (up ? 1 : 0);
}

CHECKROW_CANONICAL_END

}  // namespace checkrow::inline v0::detail
