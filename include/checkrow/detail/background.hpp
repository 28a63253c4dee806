// Threads behind the trainer: one that runs one job at a time, and workers that help it.
#pragma once

#include <checkrow/version.hpp>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#endif

namespace checkrow::inline v0::detail {

/// Leaves the cores to the trainer when it wakes up: a batch thread does not preempt. Its own signals stay
/// with the trainer's threads.
inline void become_background_thread() noexcept {
#if defined(__linux__)
  const ::sched_param none{};
  ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &none);
  ::sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
#endif
}

/// Runs `job`, which must not throw, on this thread and on up to `threads` - 1 more; returns once all are
/// through. Fewer where the system has no more threads.
template <class Job>
void run_on_threads(unsigned threads, const Job& job) {
  std::vector<std::thread> more;
  const auto start = [&] {
    more.emplace_back([&job] {
      become_background_thread();
      job();
    });
  };
  for (unsigned i = 1; i < threads; ++i) {
#if CHECKROW_EXCEPTIONS
    try {
      start();
    } catch (...) {
      break;
    }
#else
    start();
#endif
  }
  job();
  for (std::thread& one : more) one.join();
}

/// Starts with the first job.
class background {
 public:
  background() = default;
  background(const background&) = delete;
  background& operator=(const background&) = delete;
  /// Finishes the job that runs, if any.
  ~background() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  /// Starts the thread if it does not run yet. False where the system has none.
  [[nodiscard]] bool ready() { return thread_.joinable() || start(); }

  /// Hands over a job, which must not throw; the thread has to be ready, and idle.
  void post(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = std::move(job);
    }
    changed_.notify_all();
  }

  void wait_idle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !job_; });
  }
  [[nodiscard]] bool idle() {
    const std::lock_guard lock(mutex_);
    return !job_;
  }

 private:
  [[nodiscard]] bool start() noexcept {
#if CHECKROW_EXCEPTIONS
    try {
      thread_ = std::thread([this] { run(); });
    } catch (...) {
      return false;
    }
#else
    thread_ = std::thread([this] { run(); });
#endif
    return true;
  }

  void run() {
    become_background_thread();
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || job_; });
      if (!job_) return;
      lock.unlock();
      job_();
      lock.lock();
      job_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> job_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace checkrow::inline v0::detail
