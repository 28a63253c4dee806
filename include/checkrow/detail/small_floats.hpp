// Elements of two bytes as floats: exactly, in integer arithmetic.
#pragma once

#include <checkrow/detail/canonical.hpp>
#include <cstdint>

namespace checkrow::inline v0::detail {

CHECKROW_CANONICAL_BEGIN

[[nodiscard]] inline float widen_bfloat16(std::uint16_t bits) noexcept {
  return float_of(std::uint32_t{bits} << 16);
}

/// IEEE half; the payload of a NaN is kept.
[[nodiscard]] inline float widen_half(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31u, fraction = bits & 0x3ffu;
  if (exponent == 31) return float_of(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return float_of(sign | (exponent + 112) << 23 | fraction << 13);
  return float_of(sign | bits_of(static_cast<float>(fraction) * 0x1p-24f));
}

CHECKROW_CANONICAL_END

}  // namespace checkrow::inline v0::detail
