// Where touches copy pending rows: segments of bounded memory, filled by touches, emptied by workers.
#pragma once

#include <algorithm>
#include <atomic>
#include <checkrow/detail/record_layout.hpp>
#include <checkrow/detail/row_ranges.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>

namespace checkrow::inline v0::detail {

/// Rows of one table, copied by one touch at a time.
struct aside_segment {
  const record_layout* layout = nullptr;
  std::uint32_t rows = 0, capacity = 0;
  std::size_t bytes = 0;
  std::unique_ptr<std::byte[]> memory;  ///< ids, then records

  [[nodiscard]] std::uint64_t* ids() const noexcept { return reinterpret_cast<std::uint64_t*>(memory.get()); }
  [[nodiscard]] std::byte* record(std::uint32_t i) const noexcept {
    return memory.get() + capacity * sizeof(std::uint64_t) + i * layout->bytes;
  }
  /// Copies a row as it is now.
  void copy(std::uint64_t id) noexcept {
    ids()[rows] = id;
    std::byte* const to = record(rows++);
    for (std::size_t c = 0; c < layout->offsets.size(); ++c) {
      const registered_column& column = layout->table->columns[c];
      std::memcpy(to + layout->offsets[c], column.data + id * column.stride, column.shape.row_bytes());
    }
  }
};

/// Thread-safe. A touch checks a segment out at its first copy and gives it back at its end; it never waits
/// for one while it holds the lock of a block.
class aside_pool {
 public:
  /// At most `limit` bytes, but at least one segment; a touch waits `patience` seconds for one.
  aside_pool(std::uint64_t limit, double patience) noexcept
      : most_(limit), limit_(limit), patience_(patience > 0 ? std::min(patience, 1e9) : 0) {}

  /// At a boundary: every segment is free. The limit holds, or `memory` where that is less.
  void begin(std::uint64_t memory) {
    const std::lock_guard lock(mutex_);
    limit_ = std::min(most_, memory);
    const std::uint64_t segments = std::min(limit_ / segment_bytes + 1, most_segments);
    segments_.reserve(segments);
    for (auto* list : {&free_, &partial_, &full_}) list->reserve(segments_.capacity());
    full_.clear();
    partial_.clear();
    free_.clear();
    while (segments_.size() > 1 && allocated_ > limit_) {
      allocated_ -= segments_.back()->bytes;
      segments_.pop_back();
    }
    for (auto& segment : segments_) free_.push_back(segment.get());
    out_ = waiting_ = 0;
    in_use_ = peak_ = rows_ = 0;
    walked_ = cancelled_ = false;
    gave_up_ = false;
  }

  /// A segment with room for this table. `spent` is the caller's full one, or null. Waits where memory is
  /// used up. Null where no row is pending any more: every block is captured, or the capture was cancelled.
  [[nodiscard]] aside_segment* exchange(aside_segment* spent, const record_layout& layout) noexcept {
    std::unique_lock lock(mutex_);
    if (spent != nullptr) put(spent);
    const auto patient_until =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                               std::chrono::duration<double>(patience_));
    for (;;) {
      if (walked_ || cancelled_) return nullptr;
      if (aside_segment* const found = find(layout)) {
        ++out_;
        return found;
      }
      ++waiting_;
      rows_ready_.notify_one();
      const bool late = space_.wait_until(lock, patient_until) == std::cv_status::timeout;
      --waiting_;
      if (!late || walked_ || cancelled_) continue;
      if (aside_segment* const found = find(layout)) {
        ++out_;
        return found;
      }
      cancelled_ = gave_up_ = true;
      space_.notify_all();
      rows_ready_.notify_all();
    }
  }

  void give_back(aside_segment* segment) noexcept {
    const std::lock_guard lock(mutex_);
    put(segment);
  }

  /// Moves the copies of one table into a batch, in order of id, and frees their segments. False where there
  /// are too few to be worth a chunk yet.
  [[nodiscard]] bool drain(row_batch& batch) {
    std::vector<aside_segment*> taken;
    {
      const std::lock_guard lock(mutex_);
      if (!choose(taken)) return false;
    }
    const record_layout& layout = *taken.front()->layout;
    fill(batch, layout, taken);
    const std::lock_guard lock(mutex_);
    for (aside_segment* const segment : taken) {
      rows_ += segment->rows;
      in_use_ -= segment->bytes;
      free_.push_back(segment);
    }
    space_.notify_all();
    return true;
  }

  /// Every block has been captured: no touch copies any more, once the segments out are given back.
  void walked() noexcept {
    const std::lock_guard lock(mutex_);
    walked_ = true;
    space_.notify_all();
    rows_ready_.notify_all();
  }
  void cancel() noexcept {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    space_.notify_all();
    rows_ready_.notify_all();
  }
  /// Waits for something to drain. False where nothing comes any more.
  [[nodiscard]] bool wait_for_rows() noexcept {
    std::unique_lock lock(mutex_);
    rows_ready_.wait(lock, [this] { return cancelled_ || worth_draining() || (walked_ && out_ == 0); });
    return !cancelled_ && worth_draining();
  }

  [[nodiscard]] bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_.load(std::memory_order_relaxed); }
  [[nodiscard]] double patience() const noexcept { return patience_; }
  [[nodiscard]] capture_figures figures() const {
    const std::lock_guard lock(mutex_);
    return {.rows_aside = rows_, .aside_bytes = peak_};
  }

 private:
  static constexpr std::size_t segment_bytes = std::size_t{64} << 10, worth_a_chunk = 16;  ///< full ones
  static constexpr std::uint64_t most_segments = 1 << 16;

  [[nodiscard]] bool worth_draining() const noexcept {
    const bool all = walked_ && out_ == 0, starved = waiting_ != 0 || in_use_ > limit_ / 4;
    if (!full_.empty()) return all || starved || full_.size() >= worth_a_chunk;
    return !partial_.empty() && (all || waiting_ != 0);
  }

  /// The segments of one table that a worker drains next.
  [[nodiscard]] bool choose(std::vector<aside_segment*>& taken) {
    if (cancelled_ || !worth_draining()) return false;
    const bool partial_too = full_.empty() || (walked_ && out_ == 0);
    const record_layout* const of = (full_.empty() ? partial_ : full_).front()->layout;
    std::uint64_t rows = 0;
    const auto move_from = [&](std::vector<aside_segment*>& list) {
      std::erase_if(list, [&](aside_segment* segment) {
        if (segment->layout != of || (rows != 0 && rows + segment->rows > of->batch_rows)) return false;
        rows += segment->rows;
        taken.push_back(segment);
        return true;
      });
    };
    move_from(full_);
    if (partial_too) move_from(partial_);
    return true;
  }

  static void fill(row_batch& batch, const record_layout& layout, const std::vector<aside_segment*>& from) {
    std::vector<std::pair<std::uint64_t, const std::byte*>> order;
    for (const aside_segment* segment : from)
      for (std::uint32_t i = 0; i < segment->rows; ++i)
        order.emplace_back(segment->ids()[i], segment->record(i));
    std::sort(order.begin(), order.end());
    batch.table = layout.index;
    batch.aside = true;
    batch.rows = order.size();
    batch.own_ids.clear();
    for (const auto& [id, record] : order) batch.own_ids.push_back(id);
    batch.ids = batch.own_ids;
    batch.first = batch.own_ids.front();
    reserve_columns(batch, layout.table->columns, order.size());
    for (std::size_t c = 0; c < layout.offsets.size(); ++c) {
      const std::size_t row_bytes = layout.table->columns[c].shape.row_bytes();
      std::byte* to = own_column(batch, c);
      for (const auto& [id, record] : order) {
        std::memcpy(to, record + layout.offsets[c], row_bytes);
        to += row_bytes;
      }
    }
  }

  /// Given back by a touch: in order of arrival where full.
  void put(aside_segment* segment) noexcept {
    --out_;
    if (segment->rows == 0) {
      in_use_ -= segment->bytes;
      free_.push_back(segment);
    } else {
      (segment->rows == segment->capacity ? full_ : partial_).push_back(segment);
    }
    if (waiting_ != 0) space_.notify_all();
    if (worth_draining() || (walked_ && out_ == 0)) rows_ready_.notify_all();
  }

  /// One that this table has begun, a free one, or a new one.
  [[nodiscard]] aside_segment* find(const record_layout& layout) noexcept {
    for (std::size_t i = partial_.size(); i-- > 0;)
      if (partial_[i]->layout == &layout) {
        aside_segment* const found = partial_[i];
        partial_.erase(partial_.begin() + std::ptrdiff_t(i));
        return found;
      }
    const std::size_t record = sizeof(std::uint64_t) + layout.bytes, wanted = std::max(segment_bytes, record);
    aside_segment* found = nullptr;
    for (std::size_t i = free_.size(); i-- > 0 && found == nullptr;)
      if (free_[i]->bytes >= wanted) {
        found = free_[i];
        free_.erase(free_.begin() + std::ptrdiff_t(i));
      }
    if (found == nullptr) found = add(wanted);
    if (found == nullptr) return nullptr;
    found->layout = &layout;
    found->rows = 0;
    found->capacity = std::uint32_t(found->bytes / record);
    in_use_ += found->bytes;
    peak_ = std::max(peak_, in_use_);
    return found;
  }

  /// A new segment; null where the limit is reached, or the system has no memory. Never throws: lists were
  /// made long enough at the boundary.
  [[nodiscard]] aside_segment* add(std::size_t bytes) noexcept {
    if (!segments_.empty() && allocated_ + bytes > limit_ && !make_room(bytes)) return nullptr;
    if (segments_.size() == segments_.capacity()) return nullptr;
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
    std::unique_ptr<aside_segment> added(memory != nullptr ? new (std::nothrow) aside_segment : nullptr);
    if (added == nullptr) return nullptr;
    added->memory = std::move(memory);
    added->bytes = bytes;
    allocated_ += bytes;
    segments_.push_back(std::move(added));
    return segments_.back().get();
  }

  /// Gives free segments, which are too small, back to the system.
  [[nodiscard]] bool make_room(std::size_t wanted) noexcept {
    while (allocated_ + wanted > limit_ && !free_.empty()) {
      aside_segment* const small = free_.back();
      free_.pop_back();
      allocated_ -= small->bytes;
      std::erase_if(segments_, [small](const auto& one) { return one.get() == small; });
    }
    return segments_.empty() || allocated_ + wanted <= limit_;
  }

  std::uint64_t most_, limit_;  ///< bytes: of the policy, of this save
  double patience_;
  mutable std::mutex mutex_;
  std::condition_variable space_;       ///< for touches
  std::condition_variable rows_ready_;  ///< for workers
  std::vector<std::unique_ptr<aside_segment>> segments_;
  std::vector<aside_segment*> free_, partial_, full_;
  std::uint64_t out_ = 0;                                ///< segments that touches hold
  std::uint64_t waiting_ = 0;                            ///< touches that wait for one
  std::uint64_t allocated_ = 0, in_use_ = 0, peak_ = 0;  ///< bytes
  std::uint64_t rows_ = 0;
  bool walked_ = false;
  std::atomic<bool> cancelled_{false}, gave_up_{false};
};

}  // namespace checkrow::inline v0::detail
