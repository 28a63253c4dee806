// The greedy search of the Check-N-Run paper: shrink the range bin by bin, at the end where it hurts less.
#pragma once

#include <checkrow/detail/row_arithmetic.hpp>
#include <checkrow/detail/row_blocks.hpp>
#include <cstddef>

namespace checkrow::inline v0::detail {

CHECKROW_CANONICAL_BEGIN

/// Sum of squared residuals of a row on the grid [low, high], in the canonical order: 32 partials, then
/// halves.
[[nodiscard]] inline float greedy_loss(const float_row& row, float low, float high, float norm,
                                       int bits) noexcept {
  const auto top = static_cast<float>(top_code(bits));
  const float step = (high - low) * (1.0f / top);
  block_trial trial{low, 0.0f - step, 0.0f, top, norm};
  if (step > 0.0f) trial.inverse = 1.0f / step;
  float partials[loss_partials] = {};
  add_losses(row, trial, partials);
  for (std::size_t half = loss_partials / 2; half != 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) partials[i] = partials[i] + partials[i + half];
  }
  return partials[0];
}

/// The grid of the best range found in `turns` turns of (max - min) / bins each; bins >= 1.
[[nodiscard, gnu::noinline]] inline narrow_grid greedy_grid(const float_row& row, const row_range& range,
                                                            int bits, int bins, int turns) noexcept {
  const float bin = (range.max - range.min) * (1.0f / static_cast<float>(bins));
  const float norm = 1.0f / (range.max - range.min);
  float low = range.min, high = range.max;
  float best_low = low, best_high = high;
  float best = greedy_loss(row, low, high, norm, bits);
  for (int turn = 0; turn < turns; ++turn) {
    const float from_below = greedy_loss(row, low + bin, high, norm, bits);
    const float from_above = greedy_loss(row, low, high - bin, norm, bits);
    float loss = from_above;
    if (from_below < from_above) {
      low += bin;
      loss = from_below;
    } else {
      high -= bin;
    }
    if (!(loss < best)) continue;
    best = loss;
    best_low = low;
    best_high = high;
  }
  return narrow_from_range(best_low, best_high, bits);
}

/// The turns that a ratio of the bins makes: 0 to bins.
[[nodiscard, gnu::noinline]] inline int greedy_turns(int bins, float ratio) noexcept {
  const float turns = static_cast<float>(bins) * ratio;
  if (!(turns > 0.0f)) return 0;
  return turns < static_cast<float>(bins) ? static_cast<int>(turns) : bins;
}

CHECKROW_CANONICAL_END

}  // namespace checkrow::inline v0::detail
