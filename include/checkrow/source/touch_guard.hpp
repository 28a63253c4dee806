// Bodies of detail/touch_guard.hpp: the locks of blocks, and the copies made under them.
#pragma once

#include <checkrow/detail/aside_pool.hpp>
#include <checkrow/detail/touch_guard.hpp>
#include <thread>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace checkrow::inline v0::detail {

inline void cpu_pause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

CHECKROW_INLINE touch_guard::touch_guard(const registered_table& table, block_words& words, aside_pool& pool)
    : layout(table),
      words(&words),
      pool_(&pool),
      blocks_(table.rows / 64 + (table.rows % 64 != 0)),
      states_((blocks_ + 7) / 8) {
  layout.batch_rows = rows_of_a_batch(table.columns);
}

CHECKROW_INLINE void touch_guard::grow(std::uint64_t rows) {
  blocks_ = rows / 64 + (rows % 64 != 0);
  states_.grow((blocks_ + 7) / 8);
}

CHECKROW_INLINE void touch_guard::touch_range(std::uint64_t first, std::uint64_t count,
                                              std::uint8_t active) noexcept {
  std::uint64_t ids[256];
  for (std::uint64_t end = first + count; first < end;) {
    std::size_t n = 0;
    while (n < std::size(ids) && first < end) ids[n++] = first++;
    (void)touch(std::span<const std::uint64_t>(ids, n), active);
  }
}

CHECKROW_INLINE std::uint64_t touch_guard::take(std::uint64_t block, std::uint8_t active) noexcept {
  const std::uint8_t before = lock(block, active);
  if (before == (active | done_state)) return 0;
  if (before != active) (void)words->take(block);
  interleave("taken");
  return words->planned(block) & ~words->touched_in(block);
}

CHECKROW_INLINE std::uint8_t touch_guard::lock(std::uint64_t block, std::uint8_t active) noexcept {
  auto word = state(block);
  for (unsigned spins = 0;; ++spins) {
    std::uint8_t now = word.load(std::memory_order_acquire);
    if (now == (active | done_state)) return now;
    if (now != (active | locked_state)) {
      if (word.compare_exchange_weak(now, active | locked_state, std::memory_order_acquire)) return now;
      continue;
    }
    if (spins >= 200)
      std::this_thread::yield();
    else
      cpu_pause();
  }
}

CHECKROW_INLINE void touch_guard::capture(std::span<const std::uint64_t> ids, std::uint8_t active,
                                          aside_segment*& segment) noexcept {
  while (!ids.empty()) ids = ids.subspan(capture_some(ids, active, segment));
}

/// Locks up to eight blocks, copies their rows, unlocks: the misses of eight rows overlap. Returns how many
/// of the ids are marked, at least one.
CHECKROW_INLINE std::size_t touch_guard::capture_some(std::span<const std::uint64_t> ids, std::uint8_t active,
                                                      aside_segment*& segment) noexcept {
  for (std::size_t ahead = group; ahead < std::min(ids.size(), 3 * group); ++ahead) prefetch(ids[ahead]);
  if (segment == nullptr || segment->rows == segment->capacity) return capture_one(ids[0], active, segment);
  const std::size_t room = std::min<std::size_t>(group, segment->capacity - segment->rows);
  std::uint64_t held[group];
  std::size_t holds = 0, k = 0;
  for (; k < ids.size() && holds < room; ++k) {
    const std::uint64_t block = ids[k] / 64, bit = std::uint64_t{1} << ids[k] % 64;
    std::uint8_t now = state(block).load(std::memory_order_acquire);
    if (now == (active | done_state)) {
      words->touch_in(block, bit);
      continue;
    }
    if (now == (active | locked_state)) break;  // maybe by this very group
    if (!state(block).compare_exchange_strong(now, active | locked_state, std::memory_order_acquire)) break;
    if (now != active) (void)words->take(block);
    if (is_pending(block, bit)) {
      held[holds++] = ids[k];
    } else {
      words->touch_in(block, bit);
      unlock(block, active);
    }
  }
  interleave("held");
  for (std::size_t i = 0; i < holds; ++i) segment->copy(held[i]);
  interleave("copied");
  for (std::size_t i = 0; i < holds; ++i) {
    words->touch_in(held[i] / 64, std::uint64_t{1} << held[i] % 64);
    unlock(held[i] / 64, active);
  }
  return k != 0 ? k : capture_one(ids[0], active, segment);
}

/// One row, waiting for its block's lock, and for a segment where that has to be.
CHECKROW_INLINE std::size_t touch_guard::capture_one(std::uint64_t id, std::uint8_t active,
                                                     aside_segment*& segment) noexcept {
  const std::uint64_t block = id / 64, bit = std::uint64_t{1} << id % 64;
  for (;;) {
    const std::uint8_t before = lock(block, active);
    if (before == (active | done_state)) {
      words->touch_in(block, bit);
      return 1;
    }
    if (before != active) (void)words->take(block);
    if (is_pending(block, bit)) {
      if (segment == nullptr || segment->rows == segment->capacity) {
        unlock(block, active);  // nobody waits for memory under a lock
        segment = pool_->exchange(segment, layout);
        continue;  // without one: every block is done, or the capture cancelled
      }
      segment->copy(id);
    }
    interleave("copied");
    words->touch_in(block, bit);
    unlock(block, active);
    return 1;
  }
}

/// Under the block's lock, once it is sealed.
CHECKROW_INLINE bool touch_guard::is_pending(std::uint64_t block, std::uint64_t bit) const noexcept {
  return (words->planned(block) & ~words->touched_in(block) & bit) != 0 && !pool_->cancelled();
}

CHECKROW_INLINE void touch_guard::give_back(aside_segment* segment) noexcept { pool_->give_back(segment); }

}  // namespace checkrow::inline v0::detail
