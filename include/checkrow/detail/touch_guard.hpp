// Copy-on-touch, the side of one table: blocks of 64 rows are sealed, copied and captured under locks of
// their own, by whoever comes first, a touch or a worker.
//
// A block's state is generation << 2 | open, locked or done; any other value is fresh: not sealed for this
// save yet. While a save runs, a bit of the tracker's touched word means, in an open or done block, that the
// row was touched since the boundary, so that it is captured already, or need not be. What makes it free of
// races:
//   - a pending row (planned, not touched, block not done) is read only under its block's lock;
//   - its touched bit follows the copy, `done` follows the worker's copy, both with release, and a touch
//     loads both with acquire before its caller may write the row;
//   - a row leaves the cursors only at a durable commit, so a failed or cancelled save loses nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <checkrow/detail/record_layout.hpp>
#include <checkrow/detail/zeroed_words.hpp>

namespace checkrow::inline v0::detail {

class aside_pool;
struct aside_segment;

/// The tracker's words of one table; see block_tracker.
class block_words {
 public:
  virtual ~block_words() = default;
  virtual void begin(row_selection rows, cursor since) noexcept = 0;
  [[nodiscard]] virtual std::uint64_t take(std::uint64_t block) noexcept = 0;
  [[nodiscard]] virtual std::uint64_t planned(std::uint64_t block) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t touched_in(std::uint64_t block) const noexcept = 0;
  virtual void touch_in(std::uint64_t block, std::uint64_t bits) noexcept = 0;
};

class touch_guard {
 public:
  touch_guard(const registered_table& table, block_words& words, aside_pool& pool);

  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }
  /// The table has more rows from now on. No save runs.
  void grow(std::uint64_t rows);
  /// 0, or the running save's generation << 2.
  [[nodiscard]] std::uint8_t active() const noexcept { return active_.load(std::memory_order_acquire); }

  /// At a boundary: no touch and no worker is in here. (Every save leaves every block done in its own
  /// generation, so that generations may come round.)
  void begin(std::uint8_t generation) noexcept {
    active_.store(std::uint8_t(generation << 2), std::memory_order_release);
  }
  /// Nothing is pending any more. A touch that has seen active() before goes on as it began.
  void end() noexcept { active_.store(0, std::memory_order_release); }

  /// A touch while a save runs: returns how many ids are marked, all unless one is out of range. `active` is
  /// what active() said before.
  template <class Id>
  [[nodiscard]] std::size_t touch(std::span<const Id> ids, std::uint8_t active) noexcept {
    std::uint64_t need[256];
    std::size_t needed = 0, marked = 0;
    aside_segment* segment = nullptr;
    for (; marked < ids.size(); ++marked) {
      const auto id = static_cast<std::uint64_t>(ids[marked]);
      if (id >= layout.table->rows) [[unlikely]]
        break;
      if (!needs_lock(id, active)) continue;
      if (needed < 16) prefetch(id);
      need[needed++] = id;
      if (needed == std::size(need)) capture({need, std::exchange(needed, 0)}, active, segment);
    }
    capture({need, needed}, active, segment);
    if (segment != nullptr) give_back(segment);
    return marked;
  }

  void touch_range(std::uint64_t first, std::uint64_t count, std::uint8_t active) noexcept;

  /// A worker's turn at a block: locks it, seals it, and returns the rows still pending; done() ends it.
  [[nodiscard]] std::uint64_t take(std::uint64_t block, std::uint8_t active) noexcept;
  void done(std::uint64_t block, std::uint8_t active) noexcept {
    state(block).store(active | done_state, std::memory_order_release);
  }

  /// Asks for a row that is copied soon. (Inlined by force: gcc takes a function that only prefetches for one
  /// without effects, and drops the calls.)
  [[gnu::always_inline]] void prefetch(std::uint64_t id) const noexcept {
    for (const registered_column& column : layout.table->columns) {
      const std::byte* const row = column.data + id * column.stride;
      for (std::size_t at = 0; at < std::min<std::size_t>(column.shape.row_bytes(), 512); at += 64)
        __builtin_prefetch(row + at);
    }
  }

  record_layout layout;
  block_words* words;

 private:
  static constexpr std::uint8_t locked_state = 1, done_state = 2;
  static constexpr std::size_t group = 8;  ///< blocks that a touch locks at once

  [[nodiscard]] std::atomic_ref<std::uint8_t> state(std::uint64_t block) const noexcept {
    return std::atomic_ref<std::uint8_t>(reinterpret_cast<std::uint8_t*>(&states_[0])[block]);
  }

  /// Marks a row if that is safe without its block's lock; says whether it is not.
  [[nodiscard]] bool needs_lock(std::uint64_t id, std::uint8_t active) noexcept {
    const std::uint64_t block = id / 64, bit = std::uint64_t{1} << id % 64;
    const std::uint8_t now = state(block).load(std::memory_order_acquire);
    interleave("looked");
    if ((now & ~done_state) != active) return true;  // fresh or locked
    if ((words->touched_in(block) & bit) != 0) return false;
    if (now == active && (words->planned(block) & bit) != 0) return true;
    words->touch_in(block, bit);
    return false;
  }

  /// The state before. Locked then, unless that was done.
  [[nodiscard]] std::uint8_t lock(std::uint64_t block, std::uint8_t active) noexcept;
  void unlock(std::uint64_t block, std::uint8_t active) noexcept {
    state(block).store(active, std::memory_order_release);
  }

  /// Copies the rows aside that are pending, and marks all.
  void capture(std::span<const std::uint64_t> ids, std::uint8_t active, aside_segment*& segment) noexcept;
  [[nodiscard]] std::size_t capture_some(std::span<const std::uint64_t> ids, std::uint8_t active,
                                         aside_segment*& segment) noexcept;
  [[nodiscard]] std::size_t capture_one(std::uint64_t id, std::uint8_t active,
                                        aside_segment*& segment) noexcept;
  void give_back(aside_segment* segment) noexcept;
  [[nodiscard]] bool is_pending(std::uint64_t block, std::uint64_t bit) const noexcept;

  /// Tests widen the windows between two steps with this, or put threads into an order.
  static void interleave([[maybe_unused]] const char* where) noexcept {
#if defined(CHECKROW_INTERLEAVE)
    CHECKROW_INTERLEAVE(where);
#endif
  }

  aside_pool* pool_;
  std::uint64_t blocks_;
  zeroed_words states_;  ///< a byte a block
  alignas(64) std::atomic<std::uint8_t> active_{0};
};

}  // namespace checkrow::inline v0::detail

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/touch_guard.hpp>
#endif
