// The bitmap tracker: one bit a row for the touches since the last boundary, one for each cursor.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <checkrow/concepts.hpp>
#include <checkrow/detail/zeroed_words.hpp>

namespace checkrow::inline v0 {

/// Check-N-Run's tracker (section 4.1: one bit a row, set in the forward pass), with cursors, so that several
/// consumers can each know what changed since a point of their own. Costs 1 + (cursors of the strategy) bits
/// a row, in pages that are only backed once a row in them is touched.
struct bitmap {
  class table_rows;
};

/// Thread behaviour: touch() and touch_range() from any number of threads; commit() beside them; begin(),
/// mark(), clear() and grow() only while no touch runs; take() so too, or under the lock that copy_on_touch
/// has for the block (the checkpointer sees to it).
class bitmap::table_rows {
 public:
  table_rows(const bitmap&, std::uint64_t rows, cursor_set kept)
      : rows_(rows), blocks_(rows / 64 + (rows % 64 != 0 ? 1 : 0)), touched_(blocks_) {
    for (unsigned c = 0; c < cursor_count; ++c)
      if ((kept >> c & 1) != 0) changed_[c] = detail::zeroed_words(blocks_);
  }

  /// Marks rows as changed; a row already marked costs one load. Stops at the first id out of range.
  template <class Id>
  std::size_t touch(std::span<const Id> ids) noexcept {
    std::uint64_t fresh = 0;
    std::size_t marked = 0;
    for (; marked < ids.size(); ++marked) {
      const auto id = static_cast<std::uint64_t>(ids[marked]);  // a negative id becomes a huge one
      if (id >= rows_) [[unlikely]]
        break;
      fresh += set(id / 64, std::uint64_t{1} << (id % 64));
    }
    if (fresh != 0) dirty_.fetch_add(fresh, std::memory_order_relaxed);
    return marked;
  }

  void touch_range(std::uint64_t first, std::uint64_t count) noexcept {
    std::uint64_t fresh = 0;
    for (const std::uint64_t end = first + count; first < end;) {
      const std::uint64_t low = first % 64, n = std::min(end - first, 64 - low);
      const std::uint64_t bits = (n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1) << low;
      fresh += set(first / 64, bits);
      first += n;
    }
    dirty_.fetch_add(fresh, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t dirty() const noexcept { return dirty_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }
  /// Was this row marked since the last boundary? (Optional: the audit of untouched rows asks.)
  [[nodiscard]] bool touched(std::uint64_t row) const noexcept {
    return (word(touched_, row / 64).load(std::memory_order_relaxed) >> (row % 64) & 1) != 0;
  }

  void begin(row_selection rows, cursor since) noexcept {
    selection_ = rows;
    since_ = unsigned(since);
    dirty_.store(0, std::memory_order_relaxed);
  }

  std::uint64_t take(std::uint64_t block) noexcept {
    auto touched = word(touched_, block);
    if (const std::uint64_t fresh = touched.load(std::memory_order_relaxed)) {
      for (auto& changed : changed_)
        if (changed.size() != 0) {
          auto since = word(changed, block);
          since.store(since.load(std::memory_order_relaxed) | fresh, std::memory_order_release);
        }
      touched.store(0, std::memory_order_release);  // last: a reader of both finds the bits in one
    }
    return planned(block);
  }

  [[nodiscard]] std::uint64_t planned(std::uint64_t block) const noexcept {
    return selection_ == row_selection::all ? mask(block)
                                            : word(changed_[since_], block).load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t touched_in(std::uint64_t block) const noexcept {
    return word(touched_, block).load(std::memory_order_acquire);
  }
  void touch_in(std::uint64_t block, std::uint64_t bits) noexcept {
    if (const std::uint64_t fresh = set(block, bits)) dirty_.fetch_add(fresh, std::memory_order_relaxed);
  }

  void commit(cursor_set moved) noexcept {
    for (unsigned c = 0; c < cursor_count; ++c)
      if ((moved >> c & 1) != 0) zero(changed_[c]);
  }

  void mark(cursor since, std::span<const std::uint64_t> ids) noexcept {
    auto& changed = changed_[unsigned(since)];
    if (changed.size() == 0) return;
    for (const std::uint64_t id : ids)
      if (id < rows_) changed[id / 64] |= std::uint64_t{1} << (id % 64);
  }

  void clear() noexcept {
    zero(touched_);
    for (auto& changed : changed_) zero(changed);
    dirty_.store(0, std::memory_order_relaxed);
  }

  /// The table has more rows from now on: the new ones are changed since every point. (Optional: for rebind.)
  void grow(std::uint64_t rows) {
    const std::uint64_t old = rows_;
    rows_ = rows;
    blocks_ = rows / 64 + (rows % 64 != 0 ? 1 : 0);
    touched_.grow(blocks_);
    for (auto& changed : changed_)
      if (changed.size() != 0 || old == 0) changed.grow(blocks_);
    if (rows > old) touch_range(old, rows - old);
  }

 private:
  [[nodiscard]] static std::atomic_ref<std::uint64_t> word(const detail::zeroed_words& words,
                                                           std::uint64_t block) noexcept {
    return std::atomic_ref<std::uint64_t>(words[block]);
  }

  /// Sets bits of a block's word; how many of them were not set before.
  std::uint64_t set(std::uint64_t block, std::uint64_t bits) noexcept {
    auto touched = word(touched_, block);
    if ((touched.load(std::memory_order_relaxed) & bits) == bits) return 0;
    const std::uint64_t fresh = bits & ~touched.fetch_or(bits, std::memory_order_release);
    if ((fresh & (fresh - 1)) == 0) return fresh != 0;  // popcount is a call on a plain x86-64
    return unsigned(std::popcount(fresh));
  }

  /// The rows that exist in a block: all 64, or fewer in the last one.
  [[nodiscard]] std::uint64_t mask(std::uint64_t block) const noexcept {
    const std::uint64_t left = rows_ - block * 64;
    return left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
  }

  /// Leaves pages that were never written alone.
  static void zero(const detail::zeroed_words& words) noexcept {
    for (std::uint64_t i = 0; i < words.size(); ++i)
      if (word(words, i).load(std::memory_order_relaxed) != 0)
        word(words, i).store(0, std::memory_order_release);
  }

  std::uint64_t rows_;
  std::uint64_t blocks_;
  detail::zeroed_words touched_;
  std::array<detail::zeroed_words, cursor_count> changed_;
  row_selection selection_ = row_selection::all;
  unsigned since_ = 0;
  alignas(64) std::atomic<std::uint64_t> dirty_{0};
};

static_assert(row_tracker<bitmap>);

}  // namespace checkrow::inline v0
