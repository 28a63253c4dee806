// The ticket of a save: what became of it.
#pragma once

#include <checkrow/error.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace checkrow::inline v0 {

/// How much precision a save lost in one column: relative errors ||read back - had|| / ||had|| of rows. Rows
/// that are kept exactly count as 0.
struct column_error {
  std::string table, column;
  std::uint64_t rows = 0;  ///< that were measured; see options::error_sample
  double mean = 0;
  double largest = 0;
  std::uint64_t worst_row = 0;  ///< id of the measured row with the largest
};

/// What a save did. Complete once the ticket is done.
struct save_figures {
  std::uint64_t sequence = 0;
  std::uint64_t step = 0;
  bool full = false;
  bool skipped = false;            ///< another save was running, and options::overlap says skip
  std::uint64_t touched_rows = 0;  ///< since the save before
  std::uint64_t rows = 0;          ///< row records written
  std::uint64_t total_rows = 0;    ///< of all tables
  std::uint64_t bytes = 0;         ///< written to the sink, manifest included
  std::uint64_t full_bytes = 0;    ///< of a checkpoint of everything as it lies in memory, for comparison
  std::uint64_t aside_rows = 0;    ///< copied by touches that met them while the save ran
  std::uint64_t aside_bytes = 0;   ///< the most memory that such copies took at a time
  std::uint64_t queued_bytes = 0;  ///< while it runs: in the sink's buffers, of those that tell
  double wait_seconds = 0;         ///< save() waited so long for an unfinished save and for open scopes
  double stall_seconds = 0;        ///< from no scope open to save() returning
  double encode_seconds = 0;
  double write_seconds = 0;            ///< in the sink
  double total_seconds = 0;            ///< from no scope open to durable
  std::vector<column_error> errors{};  ///< of columns that lose precision, in order of table and column
};

namespace detail {

struct ticket_state {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::optional<error> failed;
  save_figures figures;

  void finish(status outcome, save_figures&& final_figures) noexcept {
    {
      const std::lock_guard lock(mutex);
      done = true;
      if (!outcome) failed = std::move(outcome).error();
      figures = std::move(final_figures);
    }
    changed.notify_all();
  }
};

}  // namespace detail

/// Cheap to copy, thread-safe, and valid after its checkpointer is gone.
class ticket {
 public:
  explicit ticket(std::shared_ptr<detail::ticket_state> state) : state_(std::move(state)) {}

  [[nodiscard]] bool done() const {
    const std::lock_guard lock(state_->mutex);
    return state_->done;
  }

  /// Waits until the save is durable, or has failed.
  [[nodiscard]] status try_wait() const {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->done; });
    if (state_->failed) return *state_->failed;
    return {};
  }

#if CHECKROW_EXCEPTIONS
  void wait() const { unwrap(try_wait()); }
#endif

  /// Why the save failed; absent while it runs and where it did not.
  [[nodiscard]] std::optional<checkrow::error> error() const {
    const std::lock_guard lock(state_->mutex);
    return state_->failed;
  }

  [[nodiscard]] save_figures figures() const {
    const std::lock_guard lock(state_->mutex);
    return state_->figures;
  }

 private:
  std::shared_ptr<detail::ticket_state> state_;
};

}  // namespace checkrow::inline v0
