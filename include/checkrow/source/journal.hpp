// Bodies of detail/journal.hpp: what each event adds to the statistics.
#pragma once

#include <algorithm>
#include <checkrow/detail/guarded.hpp>
#include <checkrow/detail/journal.hpp>
#include <checkrow/ticket.hpp>

namespace checkrow::inline v0::detail {

CHECKROW_INLINE void journal::tell(const event& what) noexcept {
  const std::lock_guard telling(telling_);
  {
    const std::lock_guard lock(mutex_);
    count(what);
  }
  if (watcher_.call) swallowed([&] { watcher_.call(what); });
}

CHECKROW_INLINE statistics journal::snapshot() const {
  const std::lock_guard lock(mutex_);
  return sums_;
}

CHECKROW_INLINE void journal::count(const event& what) noexcept {
  switch (what.kind) {
    case event_kind::sealed:
      ++sums_.saves_started;
      sums_.saving = true;
      sums_.rows_so_far = sums_.bytes_so_far = 0;
      return;
    case event_kind::captured:
      sums_.last_stall_seconds = what.seconds;
      return;
    case event_kind::progress:
      if (what.figures == nullptr) return;
      sums_.rows_so_far = what.rows;
      sums_.bytes_so_far = what.bytes;
      sums_.queued_bytes = what.figures->queued_bytes;
      return;
    case event_kind::committed:
    case event_kind::failed:
      return count_end(what);
    case event_kind::skipped:
      ++sums_.saves_skipped;
      return;
    case event_kind::collected:
      sums_.blobs_collected += what.rows;
      return;
    case event_kind::passed_over:
      ++sums_.checkpoints_passed_over;
      return;
    case event_kind::restored:
      ++sums_.restores;
      sums_.bytes_restored += what.bytes;
      sums_.restore_seconds += what.seconds;
      return;
    default:
      return;
  }
}

CHECKROW_INLINE void journal::count_end(const event& what) noexcept {
  if (what.figures == nullptr) {
    ++sums_.restore_failures;
    return;
  }
  const save_figures& save = *what.figures;
  sums_.saving = false;
  sums_.queued_bytes = 0;
  sums_.rows_so_far = save.rows;
  sums_.bytes_so_far = save.bytes;
  sums_.rows_written += save.rows;
  sums_.bytes_written += save.bytes;
  sums_.stall_seconds += save.stall_seconds;
  sums_.last_stall_seconds = save.stall_seconds;
  sums_.largest_stall_seconds = std::max(sums_.largest_stall_seconds, save.stall_seconds);
  sums_.wait_seconds += save.wait_seconds;
  sums_.encode_seconds += save.encode_seconds;
  sums_.write_seconds += save.write_seconds;
  sums_.total_seconds += save.total_seconds;
  sums_.aside_rows += save.aside_rows;
  sums_.aside_peak_bytes = save.aside_bytes;
  if (what.kind == event_kind::failed) {
    ++(what.why->kind == error_kind::cancelled ? sums_.saves_cancelled : sums_.saves_failed);
    return;
  }
  ++sums_.saves_committed;
  sums_.full_saves += save.full ? 1 : 0;
  sums_.last_step = save.step;
  sums_.last_sequence = save.sequence;
  sums_.last_bytes = save.bytes;
  sums_.last_seconds = save.total_seconds;
}

}  // namespace checkrow::inline v0::detail
