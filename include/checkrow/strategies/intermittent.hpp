// The intermittent strategy: one-shot deltas until a new base pays.
#pragma once

#include <checkrow/concepts.hpp>
#include <checkrow/detail/delta_plan.hpp>

namespace checkrow::inline v0 {

/// Check-N-Run's intermittent incremental checkpoint (section 5.1), the default. With S_j the share of all
/// rows that the j-th delta since the base wrote, a new base is written once
///     Fc = 1 + S_1 + ... + S_i  <=  Ic = (i + 1) * S_i
/// (full now and history repeats, against going on with deltas of at least S_i).
struct intermittent {
  static constexpr std::string_view name = "intermittent";
  static constexpr cursor_set cursors = checkrow::cursors(cursor::base);

  [[nodiscard]] save_plan plan(const history& past, const boundary&) const {
    if (past.empty() || new_base_pays(past)) return {};
    return detail::delta_since_base(past);
  }

  [[nodiscard]] static bool new_base_pays(const history& past) noexcept {
    return past.deltas != 0 && 1.0 + past.share_sum <= double(past.deltas + 1) * past.last_share;
  }
};

static_assert(strategy<intermittent>);

}  // namespace checkrow::inline v0
