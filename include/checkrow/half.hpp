// Half and bfloat16 for trainers that have no such types of their own: storage, and conversions.
#pragma once

#include <checkrow/detail/small_floats.hpp>
#include <checkrow/element.hpp>

namespace checkrow::inline v0 {

/// IEEE half and bfloat16 as bit patterns. (A type of your own does as well: see element_traits.)
using half = half_bits;
using bfloat16 = bfloat16_bits;

/// Exact.
[[nodiscard]] inline float to_float(half value) noexcept { return detail::widen_half(value.bits); }
[[nodiscard]] inline float to_float(bfloat16 value) noexcept { return detail::widen_bfloat16(value.bits); }

/// To the nearest, half to even; beyond the range infinity. A NaN stays one.
[[nodiscard]] inline half to_half(float value) noexcept { return {detail::narrow_half(value)}; }
[[nodiscard]] inline bfloat16 to_bfloat16(float value) noexcept { return {detail::narrow_bfloat16(value)}; }

}  // namespace checkrow::inline v0
