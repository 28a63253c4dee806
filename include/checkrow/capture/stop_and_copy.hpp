// Stop-and-copy capture: save() copies the rows of its plan to a staging buffer, and the trainer goes on.
#pragma once

#include <algorithm>
#include <checkrow/detail/erased.hpp>
#include <cstring>
#include <memory>
#include <new>

namespace checkrow::inline v0 {

/// The stall is a memcpy of the plan's records. Needs no promise about touches but the tracker's own: that a
/// row is touched between its update and the save. Right for trainers that cannot touch before they update.
struct stop_and_copy {
  using capture_tag = void;

  /// The most bytes of records staged, in all tables of a save. A save that has more encodes and writes them
  /// inside save() instead, straight from the tables, in constant memory. Also what happens where the memory
  /// for staging is not to be had.
  std::uint64_t staging_bytes = ~std::uint64_t{0};

  /// Called by table handles.
  template <class TableRows, class Id>
  [[nodiscard]] static std::size_t touch(TableRows& rows, std::span<const Id> ids) noexcept {
    return rows.touch(ids);
  }

  class staging;
};

/// The staging buffer of one checkpointer, kept from save to save.
class stop_and_copy::staging final : public detail::any_capture {
 public:
  explicit staging(const stop_and_copy& policy) noexcept : limit_(policy.staging_bytes) {}

  [[nodiscard]] std::vector<detail::row_source> capture(detail::model_tables& tables, const save_plan& plan,
                                                        bool& staged) override {
    std::vector<detail::row_source> sources;
    std::uint64_t bytes = 0;
    for (const auto& table : tables) {
      sources.push_back(table->collect(plan.rows, plan.since));
      for (const auto& column : table->columns)
        bytes += padded(sources.back().rows * column.shape.row_bytes());
    }
    staged = bytes <= limit_ && reserve(bytes);
    if (!staged) return sources;
    std::byte* to = buffer_.get();
    for (std::size_t t = 0; t < sources.size(); ++t) to = copy(tables[t]->columns, sources[t], to);
    return sources;
  }

 private:
  [[nodiscard]] static std::uint64_t padded(std::uint64_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

  [[nodiscard]] bool reserve(std::uint64_t bytes) {
    if (bytes <= capacity_) return true;
    buffer_.reset();
    capacity_ = 0;
    const std::uint64_t roomy = bytes + std::min(bytes / 2, limit_ - bytes);  // deltas grow from save to save
    buffer_.reset(new (std::nothrow) std::byte[roomy]);
    if (buffer_ != nullptr) capacity_ = roomy;
    return buffer_ != nullptr;
  }

  /// Packs the rows of one table, column by column, and points the source at the copies.
  static std::byte* copy(const std::vector<detail::registered_column>& columns, detail::row_source& source,
                         std::byte* to) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::size_t row_bytes = columns[c].shape.row_bytes();
      const row_view from = source.view(c, 0);
      if (from.index == nullptr && from.stride == row_bytes) {
        if (source.rows != 0) std::memcpy(to, from.base, source.rows * row_bytes);
      } else {
        for (std::uint64_t i = 0; i < source.rows; ++i)
          std::memcpy(to + i * row_bytes, from.row(i), row_bytes);
      }
      source.columns[c] = {to, row_bytes};
      to += padded(source.rows * row_bytes);
    }
    source.packed = true;
    return to;
  }

  std::uint64_t limit_;
  std::unique_ptr<std::byte[]> buffer_;
  std::uint64_t capacity_ = 0;
};

static_assert(capture_method<stop_and_copy>);

}  // namespace checkrow::inline v0
