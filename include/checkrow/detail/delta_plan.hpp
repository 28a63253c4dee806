// The two kinds of delta that the strategies of the paper are made of.
#pragma once

#include <checkrow/plan.hpp>

namespace checkrow::inline v0::detail {

/// The rows changed since the base; every earlier delta is superseded.
[[nodiscard]] inline save_plan delta_since_base(const history& past) {
  save_plan plan{.rows = row_selection::dirty, .since = cursor::base, .moves = cursors(cursor::last_save)};
  for (std::uint32_t i = 0; i < past.segments.size(); ++i)
    if (past.segments[i].full) plan.keep.push_back(i);
  return plan;
}

/// The rows changed since the last save; everything before stays.
[[nodiscard]] inline save_plan delta_since_last_save(const history& past) {
  save_plan plan{
      .rows = row_selection::dirty, .since = cursor::last_save, .moves = cursors(cursor::last_save)};
  for (std::uint32_t i = 0; i < past.segments.size(); ++i) plan.keep.push_back(i);
  return plan;
}

}  // namespace checkrow::inline v0::detail
