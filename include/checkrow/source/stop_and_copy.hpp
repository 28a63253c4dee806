// Bodies of capture/stop_and_copy.hpp.
#pragma once

#include <algorithm>
#include <checkrow/capture/stop_and_copy.hpp>
#include <new>

namespace checkrow::inline v0 {

/// Where the rows of one table are read.
struct stop_and_copy::staging::source {
  detail::selected_rows selected;
  std::vector<row_view> columns;
  std::uint64_t most = 1;  ///< rows of a batch
  bool packed = false;     ///< row i of the selection is row i of the columns

  /// Packs the rows, column by column, and points at the copies from then on.
  std::byte* pack(const std::vector<detail::registered_column>& table, std::byte* to) {
    for (std::size_t c = 0; c < table.size(); ++c) {
      const std::size_t row_bytes = table[c].shape.row_bytes();
      const row_view rows{table[c].data, table[c].stride, selected.all ? nullptr : selected.ids.data()};
      detail::copy_rows(rows, row_bytes, selected.rows, to);
      columns[c] = {to, row_bytes};
      to += padded(selected.rows * row_bytes);
    }
    packed = true;
    return to;
  }
  [[nodiscard]] static std::uint64_t padded(std::uint64_t bytes) noexcept { return (bytes + 63) / 64 * 64; }
};

CHECKROW_INLINE stop_and_copy::staging::staging(const stop_and_copy& policy)
    : most_(policy.staging_bytes), limit_(most_) {}
CHECKROW_INLINE stop_and_copy::staging::~staging() = default;

CHECKROW_INLINE bool stop_and_copy::staging::begin(detail::model_tables& tables, const save_plan& plan,
                                                   std::uint64_t memory) {
  limit_ = std::min(most_, memory);
  sources_.clear();
  table_ = 0;
  ranges_ = {};
  cancelled_ = false;
  staged_ = 0;
  std::uint64_t bytes = 0;
  for (const auto& table : tables) {
    source& from = sources_.emplace_back();
    from.selected = table->collect(plan.rows, plan.since);
    from.most = detail::rows_of_a_batch(table->columns);
    for (const auto& column : table->columns) {
      bytes += source::padded(from.selected.rows * column.shape.row_bytes());
      from.columns.push_back({column.data, column.stride});
    }
  }
  if (bytes > limit_ || !reserve(bytes)) return false;
  std::byte* to = buffer_.get();
  for (std::size_t t = 0; t < sources_.size(); ++t) to = sources_[t].pack(tables[t]->columns, to);
  staged_ = bytes;
  return true;
}

CHECKROW_INLINE bool stop_and_copy::staging::next(detail::row_batch& batch) {
  const std::lock_guard lock(mutex_);
  for (; table_ < sources_.size() && !cancelled_; ++table_, ranges_ = {}) {
    const source& from = sources_[table_];
    const detail::selected_rows& selected = from.selected;
    if (ranges_.row == selected.rows) continue;
    const std::uint64_t i = ranges_.row;
    batch.table = table_;
    batch.first = selected.id(i);
    batch.rows =
        ranges_.next(selected.all ? std::span<const std::uint64_t>{} : selected.ids, selected.rows,
                     selected.all ? format::full_range_shift : format::largest_range_shift, from.most);
    batch.range_shift = ranges_.shift;
    if (!selected.all)
      batch.ids = std::span(selected.ids).subspan(i, batch.rows);
    else
      batch.ids = {};
    batch.columns.clear();
    for (const row_view& column : from.columns) {
      if (!from.packed && !selected.all)
        batch.columns.push_back({column.base, column.stride, selected.ids.data() + i});
      else
        batch.columns.push_back({column.base + column.stride * i, column.stride});
    }
    return true;
  }
  return false;
}

CHECKROW_INLINE void stop_and_copy::staging::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
}

CHECKROW_INLINE void stop_and_copy::staging::end() noexcept { sources_.clear(); }

CHECKROW_INLINE detail::capture_figures stop_and_copy::staging::figures() const {
  return {.bytes_staged = staged_};
}

CHECKROW_INLINE bool stop_and_copy::staging::reserve(std::uint64_t bytes) {
  if (bytes <= capacity_ && capacity_ <= limit_) return true;
  buffer_.reset();
  capacity_ = 0;
  const std::uint64_t roomy = bytes + std::min(bytes / 2, limit_ - bytes);  // deltas grow from save to save
  buffer_.reset(new (std::nothrow) std::byte[roomy]);
  if (buffer_ != nullptr) capacity_ = roomy;
  return buffer_ != nullptr;
}

}  // namespace checkrow::inline v0
