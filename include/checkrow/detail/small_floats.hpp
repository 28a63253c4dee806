// Elements of two bytes, IEEE half and bfloat16, as floats and back: in integer and exact arithmetic, so that
// every machine agrees.
#pragma once

#include <checkrow/detail/canonical.hpp>
#include <cstdint>

namespace checkrow::inline v0::detail {

CHECKROW_CANONICAL_BEGIN

[[nodiscard, gnu::always_inline]] inline float widen_bfloat16(std::uint16_t bits) noexcept {
  return float_of(std::uint32_t{bits} << 16);
}

/// The payload of a NaN is kept.
[[nodiscard, gnu::always_inline]] inline float widen_half(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, fraction = bits & 0x3ffu;
  const std::uint32_t small = bits_of(static_cast<float>(static_cast<std::int32_t>(fraction)) * 0x1p-24f);
  const std::uint32_t usual = (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13;
  return float_of(sign | (exponent == 0 ? small : usual));
}

/// To nearest, half to even. A NaN stays one.
[[nodiscard, gnu::always_inline]] inline std::uint16_t narrow_bfloat16(float value) noexcept {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return static_cast<std::uint16_t>(nan ? bits >> 16 | 64u : rounded);
}
[[nodiscard, gnu::always_inline]] inline std::uint16_t narrow_half(float value) noexcept {
  const std::uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 2^16 and above
  if (magnitude < 0x38800000u) {  // below 2^-14: a whole number of 2^-24
    const float units = round_even(float_of(magnitude) * 0x1p24f);
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(static_cast<std::int32_t>(units)));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

/// Which of the two a column holds.
enum class small_type : bool { half, bfloat16 };

[[nodiscard, gnu::always_inline]] inline float widen(small_type type, std::uint16_t bits) noexcept {
  return type == small_type::half ? widen_half(bits) : widen_bfloat16(bits);
}
/// -0 becomes +0.
[[nodiscard, gnu::always_inline]] inline std::uint16_t narrow(small_type type, float value) noexcept {
  const std::uint16_t bits = type == small_type::half ? narrow_half(value) : narrow_bfloat16(value);
  return bits == 0x8000u ? std::uint16_t{0} : bits;
}
[[nodiscard, gnu::always_inline]] inline float rounded_to(small_type type, float value) noexcept {
  return widen(type, narrow(type, value));
}

/// An integer of the same order as the value, NaN outermost, and back.
[[nodiscard]] inline std::uint16_t order_of(std::uint16_t bits) noexcept {
  return static_cast<std::uint16_t>((bits & 0x8000u) != 0 ? ~bits : bits | 0x8000u);
}
[[nodiscard]] inline std::uint16_t bits_of_order(std::uint16_t order) noexcept {
  return static_cast<std::uint16_t>((order & 0x8000u) != 0 ? order & 0x7fffu : ~order);
}

CHECKROW_CANONICAL_END

}  // namespace checkrow::inline v0::detail
