// Stop-and-copy capture: save() copies the rows of its plan to a staging buffer, and the trainer goes on.
#pragma once

#include <checkrow/detail/erased.hpp>
#include <checkrow/detail/row_ranges.hpp>
#include <memory>
#include <mutex>
#include <vector>

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

/// The staging buffer of one checkpointer, kept from save to save. (What is virtual says here already that it
/// is inline, where it is: else every file would compile it, used or not, for the virtual table's sake.)
class stop_and_copy::staging final : public detail::any_capture {
 public:
  explicit staging(const stop_and_copy& policy);
  CHECKROW_INLINE ~staging() override;

  [[nodiscard]] CHECKROW_INLINE bool begin(detail::model_tables& tables, const save_plan& plan,
                                           std::uint64_t memory) override;
  [[nodiscard]] CHECKROW_INLINE bool next(detail::row_batch& batch) override;
  CHECKROW_INLINE void cancel() noexcept override;
  CHECKROW_INLINE void end() noexcept override;
  [[nodiscard]] CHECKROW_INLINE detail::capture_figures figures() const override;

 private:
  struct source;

  [[nodiscard]] bool reserve(std::uint64_t bytes);

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

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/stop_and_copy.hpp>
#endif
