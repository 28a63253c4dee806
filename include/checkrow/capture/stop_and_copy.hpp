// Stop-and-copy capture: save() copies the rows of its plan to a staging buffer, and the trainer goes on.
#pragma once

#include <algorithm>
#include <checkrow/detail/erased.hpp>
#include <checkrow/detail/row_ranges.hpp>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

namespace checkrow::inline v0 {

/// The stall is a memcpy of the plan's records. Needs no promise about touches but the tracker's own: that a
/// row is touched between its update and the save. Right for trainers that cannot touch before they update.
struct stop_and_copy {
  using capture_tag = void;

  /// The most bytes staged, in all tables of a save. A save that has more encodes and writes inside save()
  /// instead, straight from the tables. Also what happens where the memory for staging is not to be had.
  std::uint64_t staging_bytes = std::uint64_t{256} << 20;

  class staging;

  /// What it keeps of each table: nothing.
  template <class TableRows>
  struct table_part {
    table_part(const detail::registered_table&, TableRows&, staging&) noexcept {}
  };

  /// Called by table handles.
  template <class TableRows, class Id>
  [[nodiscard]] static std::size_t touch(TableRows& rows, table_part<TableRows>&,
                                         std::span<const Id> ids) noexcept {
    return rows.touch(ids);
  }
  template <class TableRows>
  static void touch_range(TableRows& rows, table_part<TableRows>&, std::uint64_t first,
                          std::uint64_t count) noexcept {
    rows.touch_range(first, count);
  }
};

/// The staging buffer of one checkpointer, kept from save to save.
class stop_and_copy::staging final : public detail::any_capture {
 public:
  explicit staging(const stop_and_copy& policy) noexcept : most_(policy.staging_bytes), limit_(most_) {}

  [[nodiscard]] bool begin(detail::model_tables& tables, const save_plan& plan,
                           std::uint64_t memory) override {
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
        bytes += padded(from.selected.rows * column.shape.row_bytes());
        from.columns.push_back({column.data, column.stride});
      }
    }
    if (bytes > limit_ || !reserve(bytes)) return false;
    std::byte* to = buffer_.get();
    for (std::size_t t = 0; t < sources_.size(); ++t) to = copy(tables[t]->columns, sources_[t], to);
    staged_ = bytes;
    return true;
  }

  [[nodiscard]] bool next(detail::row_batch& batch) override {
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

  void cancel() noexcept override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  void end() noexcept override { sources_.clear(); }
  [[nodiscard]] detail::capture_figures figures() const override { return {.bytes_staged = staged_}; }

 private:
  /// Where the rows of one table are read.
  struct source {
    detail::selected_rows selected;
    std::vector<row_view> columns;
    std::uint64_t most = 1;  ///< rows of a batch
    bool packed = false;     ///< row i of the selection is row i of the columns
  };

  [[nodiscard]] static std::uint64_t padded(std::uint64_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

  [[nodiscard]] bool reserve(std::uint64_t bytes) {
    if (bytes <= capacity_ && capacity_ <= limit_) return true;
    buffer_.reset();
    capacity_ = 0;
    const std::uint64_t roomy = bytes + std::min(bytes / 2, limit_ - bytes);  // deltas grow from save to save
    buffer_.reset(new (std::nothrow) std::byte[roomy]);
    if (buffer_ != nullptr) capacity_ = roomy;
    return buffer_ != nullptr;
  }

  /// Packs the rows of one table, column by column, and points the source at the copies.
  static std::byte* copy(const std::vector<detail::registered_column>& columns, source& from, std::byte* to) {
    const detail::selected_rows& selected = from.selected;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::size_t row_bytes = columns[c].shape.row_bytes();
      const row_view rows{columns[c].data, columns[c].stride, selected.all ? nullptr : selected.ids.data()};
      detail::copy_rows(rows, row_bytes, selected.rows, to);
      from.columns[c] = {to, row_bytes};
      to += padded(selected.rows * row_bytes);
    }
    from.packed = true;
    return to;
  }

  std::uint64_t most_, limit_;  ///< bytes: of the policy, of this save
  std::unique_ptr<std::byte[]> buffer_;
  std::uint64_t capacity_ = 0;
  std::uint64_t staged_ = 0;
  std::vector<source> sources_;
  std::mutex mutex_;  ///< over what follows, which next() moves on
  std::uint32_t table_ = 0;
  detail::row_ranges ranges_;
  bool cancelled_ = false;
};

static_assert(capture_method<stop_and_copy>);

}  // namespace checkrow::inline v0
