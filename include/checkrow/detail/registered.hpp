// What the checkpointer knows of a table: its columns, and the tracker behind a virtual call a save.
#pragma once

#include <bit>
#include <checkrow/concepts.hpp>
#include <checkrow/detail/raw_buffer.hpp>
#include <optional>
#include <utility>

namespace checkrow::inline v0::detail {

/// The codec that every table can have, whatever the codec_set: codecs/exact.hpp.
inline constexpr std::uint16_t exact_id = 1;
inline constexpr codec_choice stored_exactly{exact_id, 0};

/// A column once the table's rows are known.
struct registered_column {
  std::string name;
  column_shape shape;
  std::byte* data = nullptr;
  std::size_t stride = 0;
  codec_choice codec = stored_exactly;  ///< of an optimizer column
};

/// The ids that a plan selects in one table: all of its rows, or those in `ids`, ascending.
struct selected_rows {
  bool all = false;
  std::uint64_t rows = 0;
  std::vector<std::uint64_t> ids;

  [[nodiscard]] std::uint64_t id(std::uint64_t i) const noexcept { return all ? i : ids[i]; }
};

/// Rows of one table on their way to the encoder: one chunk, or more where its payload would be too large. In
/// ascending order of id: `ids`, or first, first + 1, ... where that is empty.
struct row_batch {
  std::uint32_t table = 0;
  std::uint64_t first = 0;
  std::uint64_t rows = 0;
  std::span<const std::uint64_t> ids;
  std::vector<row_view> columns;  ///< one a column, from the batch's first row on
  std::uint8_t range_shift = 0;   ///< all ids lie in one aligned range of 2^range_shift
  bool aside = false;             ///< or not: other batches of the table have rows between these
  // Memory for the capture method that fills the batch; kept from one to the next.
  std::vector<std::uint64_t> own_ids;
  raw_buffer own_rows;

  [[nodiscard]] std::uint64_t id(std::uint64_t i) const noexcept { return ids.empty() ? first + i : ids[i]; }
  /// Rows i, i + 1, ... of one column.
  [[nodiscard]] row_view view(std::size_t column, std::uint64_t i) const noexcept {
    const row_view& whole = columns[column];
    if (whole.index != nullptr) return {whole.base, whole.stride, whole.index + i};
    return {whole.base + whole.stride * i, whole.stride};
  }
};

/// What a capture took, apart from time.
struct capture_figures {
  std::uint64_t bytes_staged = 0;  ///< copied inside save()
  std::uint64_t rows_aside = 0;    ///< copied by touches while the save ran
  std::uint64_t aside_bytes = 0;   ///< the most memory that their copies took at a time
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

class touch_guard;

class model_table : public registered_table {
 public:
  explicit model_table(registered_table described) : registered_table(std::move(described)) {}
  virtual ~model_table() = default;
  model_table(const model_table&) = delete;
  model_table& operator=(const model_table&) = delete;

  [[nodiscard]] virtual std::uint64_t dirty() const noexcept = 0;
  /// Was the row touched since the last boundary? True where the tracker cannot say.
  [[nodiscard]] virtual bool touched(std::uint64_t row) const noexcept = 0;
  /// At a boundary: folds the touches, and returns the selected rows.
  [[nodiscard]] virtual selected_rows collect(row_selection selection, cursor since) = 0;
  /// What copy-on-touch keeps of it; null with another capture.
  [[nodiscard]] virtual touch_guard* guard() noexcept = 0;
  virtual void commit(cursor_set moved) noexcept = 0;
  virtual void mark(cursor since, std::span<const std::uint64_t> ids) noexcept = 0;
  virtual void clear() noexcept = 0;
  /// The table gets more rows, all of them changed; false where the tracker cannot.
  [[nodiscard]] virtual bool grow(std::uint64_t more) = 0;
};

}  // namespace checkrow::inline v0::detail
