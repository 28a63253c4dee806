// Elements of two bytes, IEEE half and bfloat16, as floats and back: in integer and exact arithmetic, so that
// every machine agrees.
#pragma once

#include <checkrow/detail/canonical.hpp>
#include <cstdint>

namespace checkrow::inline v0::detail {

CHECKROW_CANONICAL_BEGIN

/// `yes` or `no`, without a branch: compilers keep one where floats are computed.
[[nodiscard, gnu::always_inline]] inline std::uint32_t either_of(bool which, std::uint32_t yes,
                                                                 std::uint32_t no) noexcept {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(which);
  return (yes & mask) | (no & ~mask);
}

[[nodiscard, gnu::always_inline]] inline float widen_bfloat16(std::uint32_t bits) noexcept {
  return float_of(bits << 16);
}

/// The payload of a NaN is kept.
[[nodiscard, gnu::always_inline]] inline float widen_half(std::uint32_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, fraction = bits & 0x3ffu;
  const std::uint32_t small = bits_of(static_cast<float>(static_cast<std::int32_t>(fraction)) * 0x1p-24f);
  const std::uint32_t usual = (exponent + either_of(exponent == 31, 224, 112)) << 23 | fraction << 13;
  return float_of(sign | either_of(exponent == 0, small, usual));
}

/// To nearest, half to even. A NaN stays one.
[[nodiscard, gnu::always_inline]] inline std::uint32_t bfloat16_bits_of(float value) noexcept {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return either_of(nan, bits >> 16 | 64u, rounded);
}
[[nodiscard, gnu::always_inline]] inline std::uint32_t half_bits_of(float value) noexcept {
  const std::uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  constexpr std::uint32_t normal = 0x38800000u;  // 2^-14; below it: a whole number of 2^-24
  const float units = round_even(float_of(magnitude < normal ? magnitude : normal) * 0x1p24f);
  const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  std::uint32_t half =
      either_of(magnitude < normal, static_cast<std::uint32_t>(static_cast<std::int32_t>(units)),
                (rounded >> 13) - (112u << 10));
  half = either_of(magnitude >= 0x47800000u, 0x7c00u, half);  // 2^16 and above
  half = either_of(magnitude > 0x7f800000u, 0x7e00u, half);
  return sign | half;
}

[[nodiscard]] inline std::uint16_t narrow_bfloat16(float value) noexcept {
  return static_cast<std::uint16_t>(bfloat16_bits_of(value));
}
[[nodiscard]] inline std::uint16_t narrow_half(float value) noexcept {
  return static_cast<std::uint16_t>(half_bits_of(value));
}

/// Which of the two a column holds. (Bits are in 32-bit integers, so that loops stay in lanes of that width.)
enum class small_type : bool { half, bfloat16 };

[[nodiscard, gnu::always_inline]] inline float widen(small_type type, std::uint32_t bits) noexcept {
  return type == small_type::half ? widen_half(bits) : widen_bfloat16(bits);
}
/// -0 becomes +0.
[[nodiscard, gnu::always_inline]] inline std::uint32_t narrow_bits(small_type type, float value) noexcept {
  const std::uint32_t bits = type == small_type::half ? half_bits_of(value) : bfloat16_bits_of(value);
  return either_of(bits == 0x8000u, 0, bits);
}
[[nodiscard, gnu::always_inline]] inline std::uint16_t narrow(small_type type, float value) noexcept {
  return static_cast<std::uint16_t>(narrow_bits(type, value));
}
[[nodiscard, gnu::always_inline]] inline float rounded_to(small_type type, float value) noexcept {
  return widen(type, narrow_bits(type, value));
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
