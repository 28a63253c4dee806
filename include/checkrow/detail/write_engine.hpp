// What writes full buffers to a blob's file while the next ones are filled: a few threads.
#pragma once

#include <checkrow/detail/blob_file.hpp>
#include <checkrow/detail/quiet_thread.hpp>
#include <condition_variable>

namespace checkrow::inline v0::detail {

/// A buffer, and where in the file its bytes belong.
struct filled_buffer {
  page_memory memory;
  std::size_t bytes = 0;
  std::uint64_t offset = 0;
};

/// submit() and reclaim() are called by one thread at a time. A write that failed is known to the file, and
/// its buffer comes back like any other. The destructor waits for all writes.
class write_engine {
 public:
  virtual ~write_engine() = default;
  virtual void submit(filled_buffer buffer) = 0;
  /// A buffer whose write has ended; waits for one if told to (then there must be one on its way), and is
  /// empty otherwise where there is none.
  [[nodiscard]] virtual page_memory reclaim(bool wait) = 0;
};

class writer_threads final : public write_engine {
 public:
  /// At most `buffers` of them are in here at a time.
  writer_threads(blob_file& to, std::uint32_t threads, std::uint32_t buffers) : to_(to) {
    queue_.reserve(buffers);
    written_.reserve(buffers);
    threads_.reserve(threads);
    for (std::uint32_t i = 0; i < threads; ++i)
      if (quiet_thread one; one.start("checkrow-write", &body, this)) threads_.push_back(std::move(one));
  }
  writer_threads(const writer_threads&) = delete;
  writer_threads& operator=(const writer_threads&) = delete;
  ~writer_threads() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    threads_.clear();
  }

  void submit(filled_buffer buffer) override {
    if (threads_.empty()) {  // the system gives none
      to_.write(buffer.offset, {buffer.memory.data(), buffer.bytes});
      written_.push_back(std::move(buffer.memory));
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(buffer));
    }
    changed_.notify_one();
  }

  [[nodiscard]] page_memory reclaim(bool wait) override {
    std::unique_lock lock(mutex_);
    if (wait) freed_.wait(lock, [this] { return !written_.empty(); });
    if (written_.empty()) return {};
    page_memory last = std::move(written_.back());
    written_.pop_back();
    return last;
  }

 private:
  /// Of normal priority, unlike the threads that encode: a write that has ended must be followed by the next
  /// at once, or the device idles for a time slice of whoever computes; and it takes next to no time.
  static void* body(void* self) {
    static_cast<writer_threads*>(self)->run();
    return nullptr;
  }
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      filled_buffer next = std::move(queue_.front());
      queue_.erase(queue_.begin());
      lock.unlock();
      to_.write(next.offset, {next.memory.data(), next.bytes});
      lock.lock();
      written_.push_back(std::move(next.memory));
      freed_.notify_one();
    }
  }

  blob_file& to_;
  std::mutex mutex_;
  std::condition_variable changed_, freed_;  ///< of queue_, of written_
  std::vector<filled_buffer> queue_;
  std::vector<page_memory> written_;
  bool stop_ = false;
  std::vector<quiet_thread> threads_;
};

}  // namespace checkrow::inline v0::detail
