// The refit search: a table of shrunk ranges gives two starts, and least squares in integers improves each.
//
// Elements are seen as integers w = 0 to 16256 across the row's range; the table is asked with w / 128. Every
// sum is an integer, so there is no order of summation to agree upon.
#pragma once

#include <array>
#include <checkrow/detail/row_arithmetic.hpp>
#include <cstddef>
#include <cstdint>

namespace checkrow::inline v0::detail {

/// Shrinks of the range at its lower and upper end, in 1/64 of it. Even ones compete for the first start, odd
/// ones for the second. On disk nothing depends on them.
struct range_shrink {
  std::uint8_t low, high;
};
inline constexpr std::size_t refit_candidates = 16;
using shrink_list = std::array<range_shrink, refit_candidates>;
inline constexpr std::array<shrink_list, 3> refit_shrinks = {shrink_list{{{5, 10},
                                                                          {10, 5},
                                                                          {11, 16},
                                                                          {16, 11},
                                                                          {3, 3},
                                                                          {6, 6},
                                                                          {0, 8},
                                                                          {8, 0},
                                                                          {13, 13},
                                                                          {1, 4},
                                                                          {4, 1},
                                                                          {8, 20},
                                                                          {20, 8},
                                                                          {9, 9},
                                                                          {16, 16},
                                                                          {2, 2}}},
                                                             shrink_list{{{2, 4},
                                                                          {4, 2},
                                                                          {0, 2},
                                                                          {2, 0},
                                                                          {6, 6},
                                                                          {0, 5},
                                                                          {5, 0},
                                                                          {4, 8},
                                                                          {8, 4},
                                                                          {1, 1},
                                                                          {3, 3},
                                                                          {0, 3},
                                                                          {3, 0},
                                                                          {4, 4},
                                                                          {8, 8},
                                                                          {2, 2}}},
                                                             shrink_list{{{0, 1},
                                                                          {1, 0},
                                                                          {0, 2},
                                                                          {2, 0},
                                                                          {2, 2},
                                                                          {0, 0},
                                                                          {1, 3},
                                                                          {3, 1},
                                                                          {1, 1},
                                                                          {0, 3},
                                                                          {3, 0},
                                                                          {1, 2},
                                                                          {2, 1},
                                                                          {2, 3},
                                                                          {3, 2},
                                                                          {3, 3}}}};

inline constexpr int refit_units = 16256;  // 127 * 128
inline constexpr std::size_t refit_buckets = 128;
inline constexpr std::size_t refit_widest = std::size_t{1} << 20;  // beyond it the sums could overflow

[[nodiscard]] constexpr std::int64_t round_quotient(std::int64_t a, std::int64_t b) noexcept {
  const std::int64_t quotient = a / b, rest = a % b;
  return quotient + (2 * rest > b || (2 * rest == b && (quotient & 1) != 0) ? 1 : 0);
}
/// Fraction bits of a code before it is rounded.
[[nodiscard]] constexpr int refit_fraction(int bits) noexcept { return 13 - bits; }
[[nodiscard]] constexpr int refit_turns(int bits) noexcept { return bits == 8 ? 3 : 2; }

/// The code of distance d above the grid's start, with I = 2^(15 + F) / step.
[[nodiscard]] constexpr int refit_code(int d, int reciprocal, int bits) noexcept {
  const int fraction = refit_fraction(bits);
  const int scaled = (d * reciprocal + 16384) >> 15;
  const int code = (scaled + (1 << (fraction - 1))) >> fraction;
  return code < 0 ? 0 : code > top_code(bits) ? top_code(bits) : code;
}

/// For each candidate, its grid and the residual of each bucket of w, 0 to 127.
struct refit_table {
  alignas(64) std::array<std::array<std::uint8_t, refit_buckets>, refit_candidates> residual{};
  std::array<std::int16_t, refit_candidates> low{};
  std::array<std::int16_t, refit_candidates> step{};

  constexpr explicit refit_table(int bits) noexcept {
    const shrink_list& shrinks = refit_shrinks[static_cast<std::size_t>(bits - 2)];
    const int dropped = bits == 2 ? 6 : 5;
    for (std::size_t k = 0; k < refit_candidates; ++k) {
      const int from = 254 * shrinks[k].low;
      const int distance = refit_units - 254 * (shrinks[k].low + shrinks[k].high);
      const auto width = static_cast<int>(round_quotient(distance, top_code(bits)));
      const auto reciprocal =
          static_cast<int>(round_quotient(std::int64_t{1} << (15 + refit_fraction(bits)), width));
      low[k] = static_cast<std::int16_t>(from);
      step[k] = static_cast<std::int16_t>(width);
      for (std::size_t bucket = 0; bucket < refit_buckets; ++bucket) {
        const int d = static_cast<int>(bucket) * 128 - from;
        const int off = d - refit_code(d, reciprocal, bits) * width;
        const int rounded = ((off < 0 ? -off : off) + (1 << (dropped - 1))) >> dropped;
        residual[k][bucket] = static_cast<std::uint8_t>(rounded < 127 ? rounded : 127);
      }
    }
  }
};
inline constexpr std::array<refit_table, 3> refit_tables = {refit_table(2), refit_table(3), refit_table(4)};

CHECKROW_CANONICAL_BEGIN

/// A grid in units of w, and how much better than the mean it explains the row.
struct refit_fit {
  float low;
  float step;
  float gain;
};

/// w = rint(fma(x, scale, shift)).
struct refit_scale {
  float scale;
  float shift;
};

/// The best candidate of each parity. The totals of a row come from a histogram of its buckets.
[[nodiscard]] inline std::array<std::size_t, 2> refit_starts(const float_row& row,
                                                             const refit_scale& to_units,
                                                             const refit_table& table) noexcept {
  std::array<std::uint32_t, refit_buckets> count{};
  std::int16_t w[block_elements];
  for (std::size_t first = 0; first < row.width; first += block_elements) {
    const float_row block = row.block(first, block_elements);
    units_block(block, to_units.scale, to_units.shift, w);
    for (std::size_t i = 0; i < block.width; ++i) ++count[static_cast<std::size_t>((w[i] + 64) >> 7)];
  }
  std::array<std::size_t, 2> best{0, 1};
  std::array<std::uint64_t, 2> least{~std::uint64_t{0}, ~std::uint64_t{0}};
  for (std::size_t k = 0; k < refit_candidates; ++k) {
    std::uint64_t total = 0;
    for (std::size_t b = 0; b < refit_buckets; ++b) {
      const std::uint32_t residual = table.residual[k][b];
      total += count[b] * (residual * residual);
    }
    if (total >= least[k % 2]) continue;
    least[k % 2] = total;
    best[k % 2] = k;
  }
  return best;
}

/// Sums over a row, of its codes on some grid and of w.
struct refit_sums {
  std::int64_t q = 0, qq = 0, qw = 0, w = 0;
};

[[nodiscard]] inline refit_sums sums_of(const float_row& row, const refit_scale& to_units, int from,
                                        int reciprocal, int bits) noexcept {
  refit_sums sums;
  std::int16_t w[block_elements];
  for (std::size_t first = 0; first < row.width; first += block_elements) {
    const float_row block = row.block(first, block_elements);
    units_block(block, to_units.scale, to_units.shift, w);
    int q_sum = 0, qq_sum = 0, qw_sum = 0, w_sum = 0;
    for (std::size_t i = 0; i < block.width; ++i) {
      const int q = refit_code(w[i] - from, reciprocal, bits);
      q_sum += q;
      qq_sum += q * q;
      qw_sum += q * w[i];
      w_sum += w[i];
    }
    sums.q += q_sum;
    sums.qq += qq_sum;
    sums.qw += qw_sum;
    sums.w += w_sum;
  }
  return sums;
}

/// One turn: codes on the grid, then the least squares grid for those codes.
inline void refit_turn(const float_row& row, const refit_scale& to_units, int bits, refit_fit& fit) noexcept {
  const int from = static_cast<int>(round_even(fit.low));
  const float exact = static_cast<float>(1 << (15 + refit_fraction(bits))) / fit.step;
  const int reciprocal = exact < 32767.0f ? static_cast<int>(round_even(exact)) : 32767;
  const refit_sums sums = sums_of(row, to_units, from, reciprocal, bits);
  const auto n = static_cast<std::int64_t>(row.width);
  const auto numerator = static_cast<float>(n * sums.qw - sums.q * sums.w);
  const auto denominator = static_cast<float>(n * sums.qq - sums.q * sums.q);
  fit.gain = -1.0f;
  if (!(denominator > 0.0f)) return;
  fit.step = numerator / denominator;
  if (!(fit.step > 1.0f)) fit.step = 1.0f;
  fit.low = fused(0.0f - fit.step, static_cast<float>(sums.q), static_cast<float>(sums.w)) *
            (1.0f / static_cast<float>(n));
  fit.gain = numerator * fit.step;
}

/// The better of two chains of two turns, each from the best candidate of its parity; at 8 bits three turns
/// from the row's own range, which is near enough there.
[[nodiscard]] inline refit_fit best_fit(const float_row& row, const refit_scale& to_units,
                                        int bits) noexcept {
  refit_fit best{0, static_cast<float>(refit_units) / 255.0f, 0};
  if (bits == 8) {
    for (int turn = 0; turn < refit_turns(bits); ++turn) refit_turn(row, to_units, bits, best);
    return best;
  }
  const refit_table& table = refit_tables[static_cast<std::size_t>(bits - 2)];
  const std::array<std::size_t, 2> starts = refit_starts(row, to_units, table);
  for (std::size_t chain = 0; chain < 2; ++chain) {
    refit_fit fit{static_cast<float>(table.low[starts[chain]]), static_cast<float>(table.step[starts[chain]]),
                  0};
    for (int turn = 0; turn < refit_turns(bits); ++turn) refit_turn(row, to_units, bits, fit);
    if (chain == 0 || fit.gain > best.gain) best = fit;
  }
  return best;
}

/// The refitted grid of a narrow row. Rows wider than refit_widest get an invalid one.
[[nodiscard, gnu::noinline]] inline narrow_grid refit_grid(const float_row& row, const row_range& range,
                                                           int bits) noexcept {
  narrow_grid grid;
  if (row.width > refit_widest) return grid;
  const float across = range.max - range.min;
  const float scale = static_cast<float>(refit_units) / across;
  const refit_fit best = best_fit(row, {scale, (0.0f - range.min) * scale}, bits);
  const auto top = static_cast<float>(top_code(bits));
  const float unit = across * (1.0f / static_cast<float>(refit_units));
  const float middle = fused(fused(best.step, 0.5f * top, best.low), unit, range.min);
  grid = grid_of_step(best.step * unit, bits);
  if (!grid.valid) return grid;
  const auto granularity = static_cast<float>(offset_granularity(bits));
  set_offset(grid, fused(-0.5f * top, grid.step, middle) * (1.0f / grid.step * granularity), bits);
  return grid;
}

CHECKROW_CANONICAL_END

}  // namespace checkrow::inline v0::detail
