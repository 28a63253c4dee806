// The one-shot strategy: one base, then always the rows changed since it.
#pragma once

#include <checkrow/concepts.hpp>
#include <checkrow/detail/delta_plan.hpp>

namespace checkrow::inline v0 {

/// Check-N-Run's one-shot differential checkpoint (section 5.1). Restore reads the base and one delta; a
/// delta grows with the rows ever touched since the base.
struct one_shot {
  static constexpr std::string_view name = "one_shot";
  static constexpr cursor_set cursors = checkrow::cursors(cursor::base);

  [[nodiscard]] save_plan plan(const history& past, const boundary&) const {
    return past.empty() ? save_plan{} : detail::delta_since_base(past);
  }
};

static_assert(strategy<one_shot>);

}  // namespace checkrow::inline v0
