// How one row of float32 is quantized: its class, its grid, its codes; and back. docs/format.md has the
// formulas.
//
//   zero     every element is +0 or -0; decodes as +0
//   narrow   y = (offset + q * G) * step / G, where step has few significant bits and offset is a small
//   integer,
//            so that every y is exact in float32. That exactness makes encoding idempotent.
//   wide     two floats, integer arithmetic: constant rows, and ranges far from zero
//   raw      kept as it is: NaN, infinity, elements all below 2^-96, and the rare row that no grid reproduces
//
// Rule 1: a searched grid is used only if codes 0 and top both occur on it (eligible), so that the decoded
// row's min and max give the same grid again. Rule 2: a row that lies on its min/max grid already is not
// searched.
#pragma once

#include <checkrow/detail/canonical.hpp>
#include <checkrow/detail/row_blocks.hpp>
#include <checkrow/detail/row_grid.hpp>
#include <checkrow/detail/wide_rows.hpp>
#include <cstddef>
#include <cstdint>

namespace checkrow::inline v0::detail {

/// Zero, wide and raw are the values of the offset field on disk where the scale code is 0.
enum class row_class : std::uint8_t { zero = 0, wide = 1, raw = 2, narrow = 3 };

CHECKROW_CANONICAL_BEGIN

/// Below this, intermediate results could be denormal; such rows are raw.
inline constexpr std::uint32_t least_magnitude = (127u - 96u) << 23;  // bits of 2^-96
inline constexpr std::uint32_t infinite_magnitude = 0x7f800000u;
/// A scale code is the upper bits of the step, counted from 2^-96: exponent and 9 mantissa bits.
inline constexpr int scale_shift = 14;
inline constexpr int scale_base = (127 - 96) << 9;
inline constexpr int scale_limit = 65535;

[[nodiscard]] constexpr int top_code(int bits) noexcept { return (1 << bits) - 1; }
/// Significant bits of a step, and steps of an offset in one grid step.
[[nodiscard]] constexpr int step_bits(int bits) noexcept { return bits == 8 ? 10 : 7; }
[[nodiscard]] constexpr int offset_granularity(int bits) noexcept { return bits == 8 ? 8 : 16; }
[[nodiscard]] constexpr int offset_limit(int bits) noexcept {
  return (1 << 14) - top_code(bits) * offset_granularity(bits);
}

/// What is to be done with a row.
struct row_plan {
  row_class kind = row_class::zero;
  row_range range;
  narrow_grid narrow;  ///< where kind == narrow
  wide_grid wide;      ///< where kind == wide
};

[[nodiscard, gnu::noinline]] inline row_range range_of(const float_row& row) noexcept {
  std::int32_t least = order_key(static_cast<std::int32_t>(row.bits(0)));
  std::int32_t greatest = least;
  for (std::size_t i = 1; i < row.width; ++i) {
    const std::int32_t key = order_key(static_cast<std::int32_t>(row.bits(i)));
    least = key < least ? key : least;
    greatest = key > greatest ? key : greatest;
  }
  const auto min = static_cast<std::uint32_t>(order_key(least));
  const auto max = static_cast<std::uint32_t>(order_key(greatest));
  const std::uint32_t a = min & 0x7fffffffu;
  const std::uint32_t b = max & 0x7fffffffu;
  return {float_of(min), float_of(max), a > b ? a : b};
}

/// Rounds a step and gives it its code; invalid where the code does not exist.
[[nodiscard]] inline narrow_grid grid_of_step(float step, int bits) noexcept {
  narrow_grid grid;
  grid.step = round_significant(step, step_bits(bits));
  grid.scale = static_cast<int>(bits_of(grid.step) >> scale_shift) - scale_base;
  grid.valid = (bits_of(step) >> 31) == 0 && grid.scale >= 1 && grid.scale <= scale_limit;
  return grid;
}

/// Sets the offset to rint(value), if that is in range.
inline void set_offset(narrow_grid& grid, float value, int bits) noexcept {
  grid.granularity = offset_granularity(bits);
  grid.valid = grid.valid && value > -65536.0f && value < 65536.0f;
  if (!grid.valid) return;
  grid.offset = static_cast<int>(round_even(value));
  const int magnitude = grid.offset < 0 ? -grid.offset : grid.offset;
  grid.valid = magnitude <= offset_limit(bits);
}

/// The narrow grid for the range [min, max].
[[nodiscard]] inline narrow_grid narrow_from_range(float min, float max, int bits) noexcept {
  const auto top = static_cast<float>(top_code(bits));
  narrow_grid grid = grid_of_step((max - min) * (1.0f / top), bits);
  if (!grid.valid) return grid;
  const float inverse = 1.0f / grid.step;
  const float twice_low = fused(static_cast<float>(-top_code(bits)), grid.step, min + max);
  set_offset(grid, twice_low * (inverse * (0.5f * static_cast<float>(offset_granularity(bits)))), bits);
  return grid;
}

[[nodiscard, gnu::noinline]] inline block_grid block_grid_of(const narrow_grid& grid, int bits) noexcept {
  const float part = 1.0f / static_cast<float>(grid.granularity);
  return {1.0f / grid.step,
          static_cast<float>(-grid.offset) * part,
          static_cast<float>(top_code(bits)),
          grid.step * part,
          grid.offset,
          grid.granularity};
}

/// Rule 1: do the codes 0 and top occur?
[[nodiscard, gnu::noinline]] inline bool eligible(const narrow_grid& grid, const row_range& range,
                                                  int bits) noexcept {
  if (!grid.valid) return false;
  const block_grid g = block_grid_of(grid, bits);
  // Half to even, and top is odd: rint(t) <= 0 is t <= 0.5, rint(t) >= top is t > top - 0.5.
  return fused(range.min, g.inverse, g.shift) <= 0.5f && fused(range.max, g.inverse, g.shift) > g.top - 0.5f;
}

/// Rule 2: is every element on the grid already? Most rows answer at the first block.
[[nodiscard]] inline bool on_grid(const float_row& row, const narrow_grid& grid, int bits) noexcept {
  const block_grid g = block_grid_of(grid, bits);
  std::size_t length = 16;
  for (std::size_t first = 0; first < row.width; first += length, length = block_elements) {
    if (!on_grid_block(row.block(first, length), g)) return false;
  }
  return true;
}

/// Would the decoded row, which spans the whole grid, get the very same grid? All class rules count.
[[nodiscard]] inline bool wide_again(const wide_grid& grid, int bits) noexcept {
  const float low = from_units(grid.low, grid.exponent);
  const float high = from_units(grid.low + grid.step * grid.levels, grid.exponent);
  const std::uint32_t a = bits_of(low) & 0x7fffffffu;
  const std::uint32_t b = bits_of(high) & 0x7fffffffu;
  if ((a > b ? a : b) < least_magnitude) return false;
  if (grid.levels != 0 && narrow_from_range(low, high, bits).valid) return false;
  const wide_parameters first = parameters_of(grid);
  const wide_parameters second = parameters_of(wide_from_range(low, high, bits));
  return bits_of(first.step) == bits_of(second.step) && bits_of(first.low) == bits_of(second.low);
}

/// Class and min/max grid of a row with parameters (step, offset).
[[nodiscard, gnu::noinline]] inline row_plan plan_asymmetric(const float_row& row, int bits) noexcept {
  row_plan plan;
  plan.range = range_of(row);
  const std::uint32_t magnitude = plan.range.magnitude;
  if (magnitude == 0) return plan;
  plan.kind = row_class::raw;
  if (magnitude >= infinite_magnitude || magnitude < least_magnitude) return plan;
  if (plan.range.min != plan.range.max) plan.narrow = narrow_from_range(plan.range.min, plan.range.max, bits);
  if (plan.narrow.valid) {
    plan.kind = row_class::narrow;
    return plan;
  }
  plan.wide = wide_from_range(plan.range.min, plan.range.max, bits);
  if (wide_again(plan.wide, bits)) plan.kind = row_class::wide;
  return plan;
}

/// The symmetric grid of a step: y = (2q - top) * step / 2, a narrow grid with offset -top and granularity 2.
[[nodiscard]] inline narrow_grid symmetric_grid(float step, int bits) noexcept {
  narrow_grid grid = grid_of_step(step, bits);
  grid.offset = -top_code(bits);
  grid.granularity = 2;
  return grid;
}

/// Class and grid of a row with a step only; never wide.
[[nodiscard, gnu::noinline]] inline row_plan plan_symmetric(const float_row& row, int bits) noexcept {
  row_plan plan;
  plan.range = range_of(row);
  const std::uint32_t magnitude = plan.range.magnitude;
  if (magnitude == 0) return plan;
  plan.kind = row_class::raw;
  if (magnitude >= infinite_magnitude) return plan;
  plan.narrow = symmetric_grid(float_of(magnitude) * (2.0f / static_cast<float>(top_code(bits))), bits);
  if (plan.narrow.valid) plan.kind = row_class::narrow;
  return plan;
}

/// The grid of a scale code 1 to scale_limit and an offset, as decode reads them. The values may be hostile.
[[nodiscard, gnu::noinline]] inline block_grid stored_grid(int scale, int offset, int granularity,
                                                           int bits) noexcept {
  narrow_grid grid;
  grid.step = float_of(static_cast<std::uint32_t>(scale + scale_base) << scale_shift);
  grid.offset = offset;
  grid.granularity = granularity;
  return block_grid_of(grid, bits);
}

CHECKROW_CANONICAL_END

}  // namespace checkrow::inline v0::detail
