// The batch functions of the engine in use.
#pragma once

#include <checkrow/codecs/engine.hpp>
#include <checkrow/detail/batch_job.hpp>
#include <checkrow/detail/lanes_avx2.hpp>
#include <checkrow/detail/lanes_avx512.hpp>
#include <checkrow/detail/lanes_neon.hpp>
#include <checkrow/detail/row_grid.hpp>
#include <cstddef>

namespace checkrow::inline v0::detail {

/// Null where rows are encoded one by one.
template <int Bits, batch_kind Kind>
[[nodiscard]] batch_encoder batch_encoder_of(std::size_t width) noexcept {
  static_cast<void>(width);
#if defined(__x86_64__)
  const codec_engine engine = current_codec_engine();
  if constexpr (Kind != batch_kind::refit) {
    if (engine == codec_engine::avx512) return avx512::encode_uniform<Bits>;
    if (engine == codec_engine::avx2) return avx2::encode_uniform<Bits>;
  } else {
    if (engine == codec_engine::avx512 && width <= avx512::refit_limit_of(Bits))
      return avx512::encode_refit<Bits>;
    if (engine == codec_engine::avx2 && width <= avx2::refit_limit_of(Bits)) return avx2::encode_refit<Bits>;
  }
#elif defined(__aarch64__)
  if (current_codec_engine() != codec_engine::neon) return nullptr;
  if constexpr (Kind != batch_kind::refit) return neon::encode_uniform<Bits>;
  if (width <= neon::refit_limit_of(Bits)) return neon::encode_refit<Bits>;
#endif
  return nullptr;
}

/// Null where rows are decoded one by one.
template <int Bits>
[[nodiscard]] batch_decoder batch_decoder_of() noexcept {
#if defined(__x86_64__)
  const codec_engine engine = current_codec_engine();
  if (engine == codec_engine::avx512) return avx512::decode_rows<Bits>;
  if (engine == codec_engine::avx2) return avx2::decode_rows<Bits>;
#elif defined(__aarch64__)
  if (current_codec_engine() == codec_engine::neon) return neon::decode_rows<Bits>;
#endif
  return nullptr;
}

/// Null where the greedy search tries one grid after the other.
[[nodiscard]] inline trial_losses losses_of_engine() noexcept {
#if defined(__x86_64__)
  const codec_engine engine = current_codec_engine();
  if (engine == codec_engine::avx512) return avx512::greedy_losses;
  if (engine == codec_engine::avx2) return avx2::greedy_losses;
#endif
  return nullptr;
}

/// Null where rows of half and bfloat16 are encoded one by one.
template <int Bits, batch_kind Kind>
[[nodiscard]] batch_encoder small_encoder_of(std::size_t width) noexcept {
  static_cast<void>(width);
#if defined(__x86_64__)
  const codec_engine engine = current_codec_engine();
  if constexpr (Kind != batch_kind::refit) {
    if (engine == codec_engine::avx512) return avx512::encode_small;
    if (engine == codec_engine::avx2) return avx2::encode_small;
  } else {
    if (engine == codec_engine::avx512 && width <= avx512::refit_limit_of(Bits))
      return avx512::encode_small_refit<Bits>;
    if (engine == codec_engine::avx2 && width <= avx2::refit_limit_of(Bits))
      return avx2::encode_small_refit<Bits>;
  }
#elif defined(__aarch64__)
  if (current_codec_engine() != codec_engine::neon) return nullptr;
  if constexpr (Kind != batch_kind::refit) return neon::encode_small;
  if (width <= neon::refit_limit_of(Bits)) return neon::encode_small_refit<Bits>;
#endif
  return nullptr;
}

/// Null where they are decoded one by one.
[[nodiscard]] inline batch_decoder small_batch_decoder() noexcept {
#if defined(__x86_64__)
  const codec_engine engine = current_codec_engine();
  if (engine == codec_engine::avx512) return avx512::decode_small;
  if (engine == codec_engine::avx2) return avx2::decode_small;
#elif defined(__aarch64__)
  if (current_codec_engine() == codec_engine::neon) return neon::decode_small;
#endif
  return nullptr;
}

}  // namespace checkrow::inline v0::detail
