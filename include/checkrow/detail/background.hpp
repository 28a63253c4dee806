// One background thread that runs one job at a time. It starts with the first job.
#pragma once

#include <checkrow/version.hpp>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace checkrow::inline v0::detail {

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

  /// Hands over a job, which must not throw; the thread has to be idle.
  void post(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = std::move(job);
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    }
    changed_.notify_all();
  }

  void wait_idle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !job_; });
  }

 private:
  /// Leaves the cores to the trainer when it wakes up: a batch thread does not preempt.
  static void yield_to_trainer() noexcept {
#if defined(__linux__)
    const ::sched_param none{};
    ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &none);
#endif
  }

  void run() {
    yield_to_trainer();
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
