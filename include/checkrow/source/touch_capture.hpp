// Bodies of detail/touch_capture.hpp.
#pragma once

#include <bit>
#include <checkrow/detail/aside_pool.hpp>
#include <checkrow/detail/touch_capture.hpp>

namespace checkrow::inline v0::detail {

CHECKROW_INLINE touch_capture::touch_capture(std::uint64_t aside_bytes, double patience)
    : pool_(std::make_unique<aside_pool>(aside_bytes, patience)) {}
CHECKROW_INLINE touch_capture::~touch_capture() = default;

CHECKROW_INLINE bool touch_capture::begin(model_tables& tables, const save_plan& plan, std::uint64_t memory) {
  generation_ = std::uint8_t(generation_ % 63 + 1);
  all_ = plan.rows == row_selection::all;
  pool_->begin(memory);
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

CHECKROW_INLINE bool touch_capture::next(row_batch& batch) {
  for (;;) {
    if (pool_->drain(batch)) return true;
    block_range unit;
    if (claim(unit)) {
      if (capture(unit, batch)) return true;
    } else if (!pool_->wait_for_rows()) {
      if (!pool_->cancelled()) finish();
      return false;
    }
  }
}

CHECKROW_INLINE void touch_capture::cancel() noexcept { pool_->cancel(); }

CHECKROW_INLINE void touch_capture::end() noexcept {
  if (pool_->cancelled())
    for (touch_guard* const guard : guards_)
      for (std::uint64_t block = 0; block < guard->blocks(); ++block) {
        (void)guard->take(block, active());
        guard->done(block, active());
      }
  finish();
}

CHECKROW_INLINE status touch_capture::outcome() {
  if (surprised_)
    return make_error(error_kind::misuse,
                      {"the tracker's take() returned rows that planned() and touched_in() had not told of"},
                      {}, {"mend the tracker: see block_tracker in concepts.hpp"});
  if (!pool_->gave_up()) return {};
  return make_error(
      error_kind::io,
      {"the save was cancelled: a touch waited ", std::uint64_t(pool_->patience()), " s for aside memory"},
      {}, {"see why the sink is slow, or raise aside_bytes"});
}

CHECKROW_INLINE capture_figures touch_capture::figures() const { return pool_->figures(); }

CHECKROW_INLINE void touch_capture::finish() noexcept {
  for (touch_guard* const guard : guards_) guard->end();
}

CHECKROW_INLINE bool touch_capture::claim(block_range& unit) noexcept {
  const std::lock_guard lock(mutex_);
  while (next_.table < guards_.size() && next_.first == guards_[next_.table]->blocks())
    next_ = {.table = next_.table + 1};
  if (next_.table == guards_.size() || pool_->cancelled()) {
    if (walking_ == 0) pool_->walked();
    return false;
  }
  unit = next_;
  widen(*guards_[next_.table], unit);
  next_.first = unit.last;
  ++walking_;
  return true;
}

CHECKROW_INLINE void touch_capture::widen(const touch_guard& guard, block_range& unit) const noexcept {
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

CHECKROW_INLINE std::uint64_t touch_capture::planned_rows(const touch_guard& guard,
                                                          std::uint64_t block) const noexcept {
  if (all_) return 64;
  const std::uint64_t touched = guard.words->touched_in(block);
  return unsigned(std::popcount(touched | guard.words->planned(block)));
}

/// Dirty rows lie apart: a copy alone would wait for memory row by row.
[[gnu::always_inline]] inline void prefetch_pending(const touch_guard& guard, std::uint64_t block) noexcept {
  for (std::uint64_t left = guard.words->touched_in(block) | guard.words->planned(block); left != 0;
       left &= left - 1)
    guard.prefetch(block * 64 + unsigned(std::countr_zero(left)));
}

inline void copy_pending(const std::vector<registered_column>& columns, std::uint64_t block,
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

[[nodiscard]] inline bool describe_batch(row_batch& batch) noexcept {
  batch.rows = batch.own_ids.size();
  if (batch.rows == 0) return false;
  batch.first = batch.own_ids.front();
  batch.ids = batch.own_ids;
  if (batch.own_ids.back() - batch.first + 1 == batch.rows) batch.ids = {};
  return true;
}

CHECKROW_INLINE bool touch_capture::capture(const block_range& unit, row_batch& batch) {
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
    if (pool_->cancelled()) break;
    if (!all_ && block + 3 < unit.last) prefetch_pending(guard, block + 3);
    const std::uint64_t pending = guard.take(block, active());
    if (batch.own_ids.size() + unsigned(std::popcount(pending)) <= most)
      copy_pending(columns, block, pending, batch);
    else
      surprised_ = true;
    guard.done(block, active());
    if (surprised_) pool_->cancel();
  }
  finish_unit();
  return describe_batch(batch);
}

CHECKROW_INLINE void touch_capture::finish_unit() noexcept {
  const std::lock_guard lock(mutex_);
  if (--walking_ == 0 && next_.table == guards_.size()) pool_->walked();
}

}  // namespace checkrow::inline v0::detail
