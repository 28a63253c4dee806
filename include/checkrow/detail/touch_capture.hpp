// Copy-on-touch, the side of all tables: the walk of the workers over the blocks, and the end of the capture.
#pragma once

#include <atomic>
#include <checkrow/detail/erased.hpp>
#include <checkrow/detail/touch_guard.hpp>
#include <memory>
#include <mutex>
#include <vector>

namespace checkrow::inline v0::detail {

/// One unit of a walk: blocks of one table whose pending rows make a batch.
struct block_range {
  std::uint32_t table = 0;
  std::uint64_t first = 0, last = 0;  ///< the last one excluded
  unsigned shift = 0;                 ///< all lie in one aligned range of 2^shift blocks
};

/// (What is virtual says here already that it is inline, where it is: else every file would compile it, used
/// or not, for the virtual table's sake.)
class touch_capture : public any_capture {
 public:
  touch_capture(std::uint64_t aside_bytes, double patience);
  CHECKROW_INLINE ~touch_capture() override;

  [[nodiscard]] aside_pool& pool() noexcept { return *pool_; }

  [[nodiscard]] CHECKROW_INLINE bool begin(model_tables& tables, const save_plan& plan,
                                           std::uint64_t memory) override;
  /// First what touches have copied, so that the memory for it stays small; then blocks not captured yet.
  [[nodiscard]] CHECKROW_INLINE bool next(row_batch& batch) override;
  CHECKROW_INLINE void cancel() noexcept override;
  /// After a cancelled one every block is taken to its end first: a touch that still copies under a block's
  /// lock must be through before others write rows without looking at it.
  CHECKROW_INLINE void end() noexcept override;
  [[nodiscard]] CHECKROW_INLINE status outcome() override;
  [[nodiscard]] CHECKROW_INLINE capture_figures figures() const override;

 private:
  /// A unit spans no more blocks, so that aside memory is drained now and then while clean rows pass by.
  static constexpr std::uint64_t most_blocks = 1 << 16;

  void finish() noexcept;
  [[nodiscard]] std::uint8_t active() const noexcept { return std::uint8_t(generation_ << 2); }

  /// The next unit, for one worker.
  [[nodiscard]] bool claim(block_range& unit) noexcept;
  /// The largest aligned range that starts at the unit or later and has no more planned rows than a batch (or
  /// is one block); the blocks before it have none, but have to be captured like all.
  void widen(const touch_guard& guard, block_range& unit) const noexcept;
  /// At most so many rows of a block are pending. (Touched first: sealing moves bits from there to the plan.)
  [[nodiscard]] std::uint64_t planned_rows(const touch_guard& guard, std::uint64_t block) const noexcept;
  /// Copies the pending rows of a unit. False where there are none.
  [[nodiscard]] bool capture(const block_range& unit, row_batch& batch);
  void finish_unit() noexcept;

  std::unique_ptr<aside_pool> pool_;
  std::vector<touch_guard*> guards_;
  std::uint8_t generation_ = 0;         ///< 1 to 63
  std::atomic<bool> surprised_{false};  ///< by a tracker that does not keep its word
  bool all_ = false;
  std::mutex mutex_;  ///< over what follows
  block_range next_;
  std::uint64_t walking_ = 0;  ///< units that workers have claimed and not finished
};

}  // namespace checkrow::inline v0::detail

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/touch_capture.hpp>
#endif
