// The WIDE class: rows whose offset is too large for the narrow parameters, quantized in integers of an ulp.
#pragma once

#include <bit>
#include <checkrow/detail/canonical.hpp>
#include <cstddef>
#include <cstdint>

namespace checkrow::inline v0::detail {

CHECKROW_CANONICAL_BEGIN

/// y = (low + q * step) * u for 0 <= q <= levels, with u = 2^(exponent - 150), the ulp of the largest
/// element.
struct wide_grid {
  std::int64_t low = 0;
  std::int64_t step = 0;
  std::int64_t levels = 0;
  int exponent = 1;  ///< biased, 1 to 254

  friend bool operator==(const wide_grid&, const wide_grid&) = default;
};

/// The two floats of a WIDE row on disk.
struct wide_parameters {
  float step = 0;
  float low = 0;
};

/// A finite element in units of 2^(exponent - 150), half to even; at most 2^24 in magnitude.
[[nodiscard]] inline std::int64_t to_units(std::uint32_t bits, int exponent) noexcept {
  int own = static_cast<int>((bits >> 23) & 0xff);
  std::int64_t magnitude = bits & 0x7fffff;
  if (own != 0)
    magnitude |= 0x800000;
  else
    own = 1;
  const int shift = exponent - own;
  if (shift > 25) {
    magnitude = 0;
  } else if (shift > 0) {
    const std::int64_t half = (std::int64_t{1} << (shift - 1)) - 1 + ((magnitude >> shift) & 1);
    magnitude = (magnitude + half) >> shift;
  }
  return (bits >> 31) != 0 ? -magnitude : magnitude;
}

/// units * 2^(exponent - 150), exact for |units| <= 2^24.
[[nodiscard]] inline float from_units(std::int64_t units, int exponent) noexcept {
  const double ulp = __builtin_bit_cast(double, static_cast<std::uint64_t>(exponent - 150 + 1023) << 52);
  return static_cast<float>(static_cast<double>(units) * ulp);
}

[[nodiscard]] inline wide_grid wide_from_range(float low, float high, int bits) noexcept {
  const std::int64_t top = (std::int64_t{1} << bits) - 1;
  const std::uint32_t a = bits_of(low) & 0x7fffffffu;
  const std::uint32_t b = bits_of(high) & 0x7fffffffu;
  const int exponent = static_cast<int>((a > b ? a : b) >> 23);
  wide_grid grid;
  grid.exponent = exponent > 1 ? exponent : 1;
  grid.low = to_units(bits_of(low), grid.exponent);
  const std::int64_t range = to_units(bits_of(high), grid.exponent) - grid.low;
  if (range >= top * top) {  // the grid lies inside [low, high]
    grid.step = range / top;
    grid.low += (range - top * grid.step) / 2;
    grid.levels = top;
  } else if (range > 0) {  // a few ulps: a step that is a power of two gives the same grid again
    const auto length = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(range)));
    const int shift = length > bits ? length - bits : 0;
    grid.step = std::int64_t{1} << shift;
    grid.levels = range >> shift;
  }
  return grid;
}

[[nodiscard, gnu::noinline]] inline wide_parameters parameters_of(const wide_grid& grid) noexcept {
  return {from_units(grid.step, grid.exponent), from_units(grid.low, grid.exponent)};
}

/// Codes of one block, one a byte.
[[gnu::noinline]] inline void encode_wide_block(const float_row& row, const wide_grid& grid,
                                                std::uint8_t* codes) noexcept {
  for (std::size_t i = 0; i < row.width; ++i) {
    std::int64_t q = 0;
    if (grid.step != 0) q = divide_even(to_units(row.bits(i), grid.exponent) - grid.low, grid.step);
    q = q < 0 ? 0 : q;
    codes[i] = static_cast<std::uint8_t>(q < grid.levels ? q : grid.levels);
  }
}

CHECKROW_CANONICAL_END

}  // namespace checkrow::inline v0::detail
