// The greedy search of the Check-N-Run paper: shrink the range bin by bin, at the end where it hurts less.
#pragma once

#include <checkrow/detail/row_arithmetic.hpp>
#include <checkrow/detail/row_blocks.hpp>
#include <cstddef>

namespace checkrow::inline v0::detail {

CHECKROW_CANONICAL_BEGIN

/// The grid [low, high].
[[nodiscard]] inline block_trial greedy_trial(float low, float high, float norm, int bits) noexcept {
  const auto top = static_cast<float>(top_code(bits));
  const float step = (high - low) * (1.0f / top);
  block_trial trial{low, 0.0f - step, 0.0f, top, norm};
  if (step > 0.0f) trial.inverse = 1.0f / step;
  return trial;
}

/// Sum of squared residuals of a row in the canonical order: 32 partials, then halves.
[[nodiscard]] inline float greedy_loss(const float_row& row, const block_trial& trial) noexcept {
  float partials[loss_partials] = {};
  add_losses(row, trial, partials);
  for (std::size_t half = loss_partials / 2; half != 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) partials[i] = partials[i] + partials[i + half];
  }
  return partials[0];
}

/// trial_losses without an engine.
inline void plain_losses(const float_row& row, const block_trial& one, const block_trial& other,
                         float* losses) noexcept {
  losses[0] = greedy_loss(row, one);
  losses[1] = greedy_loss(row, other);
}

/// The grid of the best range found in `turns` turns of (max - min) / bins each; bins >= 1.
[[nodiscard, gnu::noinline]] inline narrow_grid greedy_grid(const float_row& row, const row_range& range,
                                                            int bits, int bins, int turns,
                                                            trial_losses losses_of) noexcept {
  const float bin = (range.max - range.min) * (1.0f / static_cast<float>(bins));
  const float norm = 1.0f / (range.max - range.min);
  float low = range.min, high = range.max;
  float best_low = low, best_high = high;
  float best = greedy_loss(row, greedy_trial(low, high, norm, bits));
  for (int turn = 0; turn < turns; ++turn) {
    float losses[2];  // from below, from above
    losses_of(row, greedy_trial(low + bin, high, norm, bits), greedy_trial(low, high - bin, norm, bits),
              losses);
    float loss = losses[1];
    if (losses[0] < losses[1]) {
      low += bin;
      loss = losses[0];
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
