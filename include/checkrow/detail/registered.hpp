// What the checkpointer knows of a table: its columns, and the tracker behind a virtual call a save.
#pragma once

#include <bit>
#include <checkrow/concepts.hpp>
#include <optional>
#include <utility>

namespace checkrow::inline v0::detail {

/// A column once the table's rows are known.
struct registered_column {
  std::string name;
  column_shape shape;
  std::byte* data = nullptr;
  std::size_t stride = 0;
  codec_choice codec{1, 0};  ///< of an optimizer column; exact by default
};

/// The rows of one table that a save writes, wherever they are read from: a staging buffer or the table
/// itself. In order of id; either all rows of the table (ids is empty), or those in ids.
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

/// A table as registered. What follows `codec` is its tracker, whatever its type; see table_row_tracker.
struct registered_table {
  std::string name;
  std::uint64_t rows = 0;
  std::vector<registered_column> columns;  ///< the weights first, the others in order of name
  std::optional<codec_choice> codec;
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      audited;  ///< (row, hash), for the check of untouched rows
};

class model_table : public registered_table {
 public:
  explicit model_table(registered_table described) : registered_table(std::move(described)) {}
  virtual ~model_table() = default;
  model_table(const model_table&) = delete;
  model_table& operator=(const model_table&) = delete;

  [[nodiscard]] virtual std::uint64_t dirty() const noexcept = 0;
  /// Was the row touched since the last boundary? True where the tracker cannot say.
  [[nodiscard]] virtual bool touched(std::uint64_t row) const noexcept = 0;
  /// At a boundary: folds the touches, and returns the selected rows, in place.
  [[nodiscard]] virtual row_source collect(row_selection selection, cursor since) = 0;
  virtual void commit(cursor_set moved) noexcept = 0;
  virtual void mark(cursor since, std::span<const std::uint64_t> ids) noexcept = 0;
  virtual void clear() noexcept = 0;
};

}  // namespace checkrow::inline v0::detail
