// How copies of one table's rows lie in aside memory.
#pragma once

#include <checkrow/detail/registered.hpp>

namespace checkrow::inline v0::detail {

/// Of a segment: every column of a row side by side.
struct record_layout {
  explicit record_layout(const registered_table& of) : table(&of) {
    for (const registered_column& column : of.columns) {
      offsets.push_back(bytes);
      bytes += (column.shape.row_bytes() + 7) / 8 * 8;
    }
  }
  const registered_table* table;
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
  std::uint32_t index = 0;       ///< of the table in the running save
  std::uint64_t batch_rows = 1;  ///< the most that a worker takes at once
};

}  // namespace checkrow::inline v0::detail
