// The consecutive strategy: one base, then the rows changed since the save before.
#pragma once

#include <checkrow/concepts.hpp>
#include <checkrow/detail/delta_plan.hpp>

namespace checkrow::inline v0 {

/// Check-N-Run's consecutive incremental checkpoint (section 5.1). The smallest saves; restore reads the base
/// and every delta since, so what is kept grows without bound.
struct consecutive {
  static constexpr std::string_view name = "consecutive";
  static constexpr cursor_set cursors = checkrow::cursors(cursor::last_save);

  [[nodiscard]] save_plan plan(const history& past, const boundary&) const {
    return past.empty() ? save_plan{} : detail::delta_since_last_save(past);
  }
};

static_assert(strategy<consecutive>);

}  // namespace checkrow::inline v0
