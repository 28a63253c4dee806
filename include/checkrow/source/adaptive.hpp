// Bodies of codecs/adaptive.hpp: the searches.
#pragma once

#include <checkrow/codecs/adaptive.hpp>
#include <checkrow/detail/engines.hpp>
#include <checkrow/detail/greedy_search.hpp>
#include <checkrow/detail/refit_search.hpp>

namespace checkrow::inline v0 {

CHECKROW_INLINE detail::narrow_grid greedy::propose(const detail::float_row& row,
                                                    const detail::row_range& range,
                                                    int codec_bits) const noexcept {
  constexpr int most = 1 << 20;
  const int usual = codec_bits == 8 ? 200 : codec_bits == 4 ? 45 : 25;
  const int count = bins <= 0 ? usual : bins < most ? bins : most;
  const detail::trial_losses engine = detail::losses_of_engine();
  return detail::greedy_grid(row, range, codec_bits, count, detail::greedy_turns(count, ratio),
                             engine != nullptr ? engine : detail::plain_losses);
}

CHECKROW_INLINE detail::narrow_grid refit::propose(const detail::float_row& row,
                                                   const detail::row_range& range,
                                                   int codec_bits) const noexcept {
  return detail::refit_grid(row, range, codec_bits);
}

}  // namespace checkrow::inline v0
