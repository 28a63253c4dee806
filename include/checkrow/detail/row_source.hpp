// The rows of one table that a save writes, wherever they are read from: a staging buffer or the table
// itself.
#pragma once

#include <checkrow/table.hpp>

namespace checkrow::inline v0::detail {

/// Rows in order of id. Either all rows of the table (ids is empty, rows = the table's), or those in ids.
struct row_source {
  std::uint64_t rows = 0;
  bool all = false;
  std::vector<std::uint64_t> ids;
  /// One a column. Packed: row i of the source is row i of the view. In place: it is row id(i).
  std::vector<row_view> columns;
  bool packed = false;

  [[nodiscard]] std::uint64_t id(std::uint64_t i) const noexcept { return all ? i : ids[i]; }

  /// Rows i, i + 1, ... of one column.
  [[nodiscard]] row_view view(std::size_t column, std::uint64_t i) const noexcept {
    const row_view& whole = columns[column];
    if (packed || all) return {whole.base + whole.stride * i, whole.stride};
    return {whole.base, whole.stride, ids.data() + i};
  }
};

/// The rows in place: for capture that encodes while the trainer waits.
template <class Table>
[[nodiscard]] row_source rows_in_place(Table& table, row_selection selection, cursor since) {
  row_source source;
  source.all = selection == row_selection::all;
  table.tracked.begin(selection, since);
  for (std::uint64_t block = 0; block < table.tracked.blocks(); ++block) {
    std::uint64_t pending = table.tracked.take(block);
    if (source.all) continue;  // taken for the fold alone
    for (; pending != 0; pending &= pending - 1)
      source.ids.push_back(block * 64 + unsigned(std::countr_zero(pending)));
  }
  source.rows = source.all ? table.rows : source.ids.size();
  for (const registered_column& column : table.columns)
    source.columns.push_back({column.data, column.stride});
  return source;
}

}  // namespace checkrow::inline v0::detail
