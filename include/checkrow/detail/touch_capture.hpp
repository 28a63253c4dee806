// Copy-on-touch, the side of all tables: the walk of the workers over the blocks, and the end of the capture.
#pragma once

#include <bit>
#include <checkrow/detail/erased.hpp>
#include <checkrow/detail/touch_guard.hpp>

namespace checkrow::inline v0::detail {

/// One unit of a walk: blocks of one table whose pending rows make a batch.
struct block_range {
  std::uint32_t table = 0;
  std::uint64_t first = 0, last = 0;  ///< the last one excluded
  unsigned shift = 0;                 ///< all lie in one aligned range of 2^shift blocks
};

class touch_capture : public any_capture {
 public:
  touch_capture(std::uint64_t aside_bytes, double patience) : pool_(aside_bytes, patience) {}

  [[nodiscard]] aside_pool& pool() noexcept { return pool_; }

  [[nodiscard]] bool begin(model_tables& tables, const save_plan& plan, std::uint64_t memory) override {
    generation_ = std::uint8_t(generation_ % 63 + 1);
    all_ = plan.rows == row_selection::all;
    pool_.begin(memory);
    guards_.clear();
    for (const auto& table : tables) {
      touch_guard& guard = *guards_.emplace_back(table->guard());
      guard.layout.index = std::uint32_t(guards_.size() - 1);
      guard.words->begin(plan.rows, plan.since);
    }
    next_ = {};
    walking_ = 0;
    surprised_ = false;
    for (touch_guard* const guard : guards_) guard->begin(generation_);
    return true;
  }

  /// First what touches have copied, so that the memory for it stays small; then blocks not captured yet.
  [[nodiscard]] bool next(row_batch& batch) override {
    for (;;) {
      if (pool_.drain(batch)) return true;
      block_range unit;
      if (claim(unit)) {
        if (capture(unit, batch)) return true;
      } else if (!pool_.wait_for_rows()) {
        if (!pool_.cancelled()) finish();
        return false;
      }
    }
  }

  void cancel() noexcept override { pool_.cancel(); }
  /// After a cancelled one every block is taken to its end first: a touch that still copies under a block's
  /// lock must be through before others write rows without looking at it.
  void end() noexcept override {
    if (pool_.cancelled())
      for (touch_guard* const guard : guards_)
        for (std::uint64_t block = 0; block < guard->blocks(); ++block) {
          (void)guard->take(block, active());
          guard->done(block, active());
        }
    finish();
  }
  [[nodiscard]] status outcome() override {
    if (surprised_)
      return make_error(
          error_kind::misuse,
          {"the tracker's take() returned rows that planned() and touched_in() had not told of"}, {},
          {"mend the tracker: see block_tracker in concepts.hpp"});
    if (!pool_.gave_up()) return {};
    return make_error(
        error_kind::io,
        {"the save was cancelled: a touch waited ", std::uint64_t(pool_.patience()), " s for aside memory"},
        {}, {"see why the sink is slow, or raise aside_bytes"});
  }
  [[nodiscard]] capture_figures figures() const override { return pool_.figures(); }

 private:
  /// A unit spans no more blocks, so that aside memory is drained now and then while clean rows pass by.
  static constexpr std::uint64_t most_blocks = 1 << 16;

  void finish() noexcept {
    for (touch_guard* const guard : guards_) guard->end();
  }
  [[nodiscard]] std::uint8_t active() const noexcept { return std::uint8_t(generation_ << 2); }

  /// The next unit, for one worker.
  [[nodiscard]] bool claim(block_range& unit) noexcept {
    const std::lock_guard lock(mutex_);
    while (next_.table < guards_.size() && next_.first == guards_[next_.table]->blocks())
      next_ = {.table = next_.table + 1};
    if (next_.table == guards_.size() || pool_.cancelled()) {
      if (walking_ == 0) pool_.walked();
      return false;
    }
    unit = next_;
    widen(*guards_[next_.table], unit);
    next_.first = unit.last;
    ++walking_;
    return true;
  }

  /// The largest aligned range that starts at the unit or later and has no more planned rows than a batch (or
  /// is one block); the blocks before it have none, but have to be captured like all.
  void widen(const touch_guard& guard, block_range& unit) const noexcept {
    const std::uint64_t beyond = std::min(unit.first + most_blocks, guard.blocks());
    std::uint64_t anchor = unit.first, rows = 0;
    while (anchor < beyond && (rows = planned_rows(guard, anchor)) == 0) ++anchor;
    unit.last = std::min(anchor + 1, beyond);
    for (unsigned shift = 1; shift + 6 <= format::largest_range_shift && unit.last < beyond; ++shift) {
      const std::uint64_t start = anchor >> shift << shift;
      const std::uint64_t whole = start + (std::uint64_t{1} << shift);
      if (whole > beyond && beyond < guard.blocks()) return;
      const std::uint64_t end = std::min(whole, guard.blocks());
      for (std::uint64_t block = unit.last; block < end && rows <= guard.layout.batch_rows; ++block)
        rows += planned_rows(guard, block);
      if (start < unit.first || rows > guard.layout.batch_rows) return;
      unit.last = end;
      unit.shift = shift;
    }
  }

  /// At most so many rows of a block are pending. (Touched first: sealing moves bits from there to the plan.)
  [[nodiscard]] std::uint64_t planned_rows(const touch_guard& guard, std::uint64_t block) const noexcept {
    if (all_) return 64;
    const std::uint64_t touched = guard.words->touched_in(block);
    return unsigned(std::popcount(touched | guard.words->planned(block)));
  }

  /// Copies the pending rows of a unit. False where there are none.
  [[nodiscard]] bool capture(const block_range& unit, row_batch& batch) {
    touch_guard& guard = *guards_[unit.table];
    const auto& columns = guard.layout.table->columns;
    batch.table = unit.table;
    batch.aside = false;
    batch.own_ids.clear();
    batch.range_shift = std::uint8_t(unit.shift + 6);
    const std::uint64_t most =
        std::min((unit.last - unit.first) * 64, std::max<std::uint64_t>(guard.layout.batch_rows, 64));
    batch.own_ids.reserve(most);  // before a lock is taken: nothing below throws
    reserve_columns(batch, columns, most);
    for (std::uint64_t block = unit.first; block < unit.last; ++block) {
      if (pool_.cancelled()) break;
      if (!all_ && block + 3 < unit.last) prefetch(guard, block + 3);
      const std::uint64_t pending = guard.take(block, active());
      if (batch.own_ids.size() + unsigned(std::popcount(pending)) <= most)
        copy_block(columns, block, pending, batch);
      else
        surprised_ = true;
      guard.done(block, active());
      if (surprised_) pool_.cancel();
    }
    finish_unit();
    return describe(batch);
  }

  /// Dirty rows lie apart: a copy alone would wait for memory row by row.
  [[gnu::always_inline]] static void prefetch(const touch_guard& guard, std::uint64_t block) noexcept {
    for (std::uint64_t left = guard.words->touched_in(block) | guard.words->planned(block); left != 0;
         left &= left - 1)
      guard.prefetch(block * 64 + unsigned(std::countr_zero(left)));
  }

  static void copy_block(const std::vector<registered_column>& columns, std::uint64_t block,
                         std::uint64_t pending, row_batch& batch) {
    const std::uint64_t at = batch.own_ids.size();
    for (std::uint64_t left = pending; left != 0; left &= left - 1)
      batch.own_ids.push_back(block * 64 + unsigned(std::countr_zero(left)));
    const std::uint64_t n = batch.own_ids.size() - at;
    if (n == 0) return;
    const bool run = batch.own_ids.back() - batch.own_ids[at] + 1 == n;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::size_t row_bytes = columns[c].shape.row_bytes();
      const row_view from =
          run ? row_view{columns[c].data + batch.own_ids[at] * columns[c].stride, columns[c].stride}
              : row_view{columns[c].data, columns[c].stride, batch.own_ids.data() + at};
      copy_rows(from, row_bytes, n, own_column(batch, c) + at * row_bytes);
    }
  }

  [[nodiscard]] static bool describe(row_batch& batch) noexcept {
    batch.rows = batch.own_ids.size();
    if (batch.rows == 0) return false;
    batch.first = batch.own_ids.front();
    batch.ids = batch.own_ids;
    if (batch.own_ids.back() - batch.first + 1 == batch.rows) batch.ids = {};
    return true;
  }

  void finish_unit() noexcept {
    const std::lock_guard lock(mutex_);
    if (--walking_ == 0 && next_.table == guards_.size()) pool_.walked();
  }

  aside_pool pool_;
  std::vector<touch_guard*> guards_;
  std::uint8_t generation_ = 0;         ///< 1 to 63
  std::atomic<bool> surprised_{false};  ///< by a tracker that does not keep its word
  bool all_ = false;
  std::mutex mutex_;  ///< over what follows
  block_range next_;
  std::uint64_t walking_ = 0;  ///< units that workers have claimed and not finished
};

}  // namespace checkrow::inline v0::detail
