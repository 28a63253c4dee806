// The reader: a thread that fills batches ahead of the trainer, and agrees with it on where to stop.
//
// A checkpoint must not fall between a sample's reading and its training: such a sample would be lost, or
// seen twice, by the run that resumes. So the trainer allows the reader as many batches as there are until
// the next checkpoint. The reader stops by itself after exactly that many, the trainer drains them, and
// nothing is in flight when both states are saved. (Check-N-Run calls this gap-free reading.)
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sample.hpp"

namespace dlrm {

class reader {
 public:
  /// Reads batches of `batch_size` from `source`, at most `queue_length` ahead of the trainer. The source
  /// must outlive the reader, and is the reader's alone until then.
  reader(sample_source& source, std::size_t batch_size, std::size_t queue_length = 8)
      : source_(source), batch_size_(batch_size), queue_length_(queue_length), thread_([this] { run(); }) {}

  ~reader() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;

  /// Lets the reader fill `batches` more.
  void allow(std::uint64_t batches) {
    {
      const std::lock_guard lock(mutex_);
      allowed_ += batches;
    }
    changed_.notify_all();
  }

  /// Swaps the next batch into `to`, from any number of threads; waits for it, also for an allowance. False
  /// once the log has ended or close() was called. Throws what the source threw.
  bool next(batch& to) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty() || ended_ || closed_; });
      if (queue_.empty() || closed_) {
        if (failure_) std::rethrow_exception(failure_);
        return false;
      }
      std::swap(to, queue_.front());
      spare_.push_back(std::move(queue_.front()));  // its memory is used again
      queue_.pop_front();
    }
    changed_.notify_all();
    return true;
  }

  /// Wakes every thread that waits in next(), for good.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

  /// Where the log will be read on. Only at a boundary: all allowed batches have been taken (or the log
  /// ended).
  [[nodiscard]] log_position position() const {
    const std::lock_guard lock(mutex_);
    require_boundary("position()");
    return source_.position();
  }

  /// Bytes of position(), for a checkpoint.
  [[nodiscard]] std::vector<std::byte> save_state() const {
    const log_position at = position();
    std::vector<std::byte> bytes(sizeof at);
    std::memcpy(bytes.data(), &at, sizeof at);
    return bytes;
  }

  /// Goes to where save_state() was called. Only at a boundary, like it.
  void load_state(std::span<const std::byte> bytes) {
    log_position at;
    if (bytes.size() != sizeof at) throw std::invalid_argument("not a reader's state: wrong size");
    std::memcpy(&at, bytes.data(), sizeof at);
    const std::lock_guard lock(mutex_);
    require_boundary("load_state()");
    source_.seek(at);
    ended_ = false;
  }

 private:
  void require_boundary(const char* call) const {
    const bool idle = (allowed_ == 0 || ended_) && queue_.empty() && !filling_;
    if (!idle) throw std::logic_error(std::string("reader: ") + call + " while batches are in flight");
  }

  void run() {
    batch filled;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock,
                    [&] { return stop_ || (allowed_ > 0 && !ended_ && queue_.size() < queue_length_); });
      if (stop_) return;
      if (!spare_.empty()) {
        filled = std::move(spare_.back());
        spare_.pop_back();
      }
      filling_ = true;
      lock.unlock();
      bool any = false;
      std::exception_ptr failure;
      try {
        any = read_batch(source_, batch_size_, filled);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      filling_ = false;
      if (any) {
        queue_.push_back(std::move(filled));
        --allowed_;
      } else {
        ended_ = true;
        failure_ = failure;
      }
      changed_.notify_all();
    }
  }

  sample_source& source_;
  const std::size_t batch_size_;
  const std::size_t queue_length_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< anything below changed
  std::deque<batch> queue_;
  std::vector<batch> spare_;
  std::uint64_t allowed_ = 0;
  bool filling_ = false, ended_ = false, closed_ = false, stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace dlrm
