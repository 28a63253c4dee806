// The full strategy: every save writes every row.
#pragma once

#include <checkrow/concepts.hpp>

namespace checkrow::inline v0 {

/// The yardstick that the incremental strategies are measured against. Restore reads one segment.
struct full {
  static constexpr std::string_view name = "full";
  static constexpr cursor_set cursors = 0;

  [[nodiscard]] save_plan plan(const history&, const boundary&) const { return {}; }
};

static_assert(strategy<full>);

}  // namespace checkrow::inline v0
