// When a save is due.
#pragma once

#include <atomic>
#include <checkrow/concepts.hpp>
#include <chrono>
#include <limits>
#include <mutex>

namespace checkrow::inline v0 {

/// Due once so many batches, samples or seconds have gone by since the last time; with several given,
/// whichever comes first. Zero means: not by this measure. Batches and samples count in whole multiples, so
/// that a resumed run saves at the same steps as one that was never killed (by samples: where its own saves
/// were at multiples, since a restore knows no sample count).
struct every {
  std::uint64_t batches = 0;
  std::uint64_t samples = 0;
  double seconds = 0;

  class timer;
};

/// Thread-safe; due() is true for exactly one of the callers that come past a multiple.
class every::timer {
 public:
  explicit timer(const every& policy) noexcept
      : every_(policy), next_step_(policy.batches), next_sample_(policy.samples) {
    restart_clock();
  }

  [[nodiscard]] bool due(std::uint64_t step, std::uint64_t samples) noexcept {
    if (every_.samples != 0) {
      std::uint64_t unset = 0;  // counted from the first call, wherever a restored run's count stands then
      next_sample_.compare_exchange_strong(unset, after(samples == 0 ? 0 : samples - 1, every_.samples));
    }
    if (!reached(step, samples)) return false;  // what nearly every call finds, without the mutex
    const std::lock_guard lock(mutex_);
    if (!reached(step, samples)) return false;  // another caller was first
    if (by_batches(step)) next_step_.store(after(step, every_.batches));
    if (by_samples(samples)) next_sample_.store(after(samples, every_.samples));
    restart_clock();
    return true;
  }

  /// A restored run goes on at this step.
  void restart(std::uint64_t step) noexcept {
    const std::lock_guard lock(mutex_);
    if (every_.batches != 0) next_step_.store(after(step, every_.batches));
    next_sample_.store(0);
    restart_clock();
  }

 private:
  [[nodiscard]] static std::uint64_t after(std::uint64_t at, std::uint64_t each) noexcept {
    return (at / each + 1) * each;
  }
  [[nodiscard]] bool by_batches(std::uint64_t step) const noexcept {
    return every_.batches != 0 && step >= next_step_.load();
  }
  [[nodiscard]] bool by_samples(std::uint64_t samples) const noexcept {
    return every_.samples != 0 && samples >= next_sample_.load();
  }
  [[nodiscard]] bool reached(std::uint64_t step, std::uint64_t samples) const noexcept {
    return by_batches(step) || by_samples(samples) || (every_.seconds > 0 && now() >= next_time_.load());
  }
  [[nodiscard]] static std::int64_t now() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  [[nodiscard]] std::int64_t interval() const noexcept {
    const double nanoseconds = every_.seconds * 1e9;
    return nanoseconds < 4e18 ? std::int64_t(nanoseconds) : std::int64_t{4'000'000'000'000'000'000};
  }
  void restart_clock() noexcept {
    if (every_.seconds > 0) next_time_.store(now() + interval());
  }

  const every every_;
  std::mutex mutex_;  ///< held by those who change what is next
  std::atomic<std::uint64_t> next_step_;
  std::atomic<std::uint64_t> next_sample_;  ///< 0: not known yet
  std::atomic<std::int64_t> next_time_{std::numeric_limits<std::int64_t>::max()};
};

static_assert(due_policy<every>);

}  // namespace checkrow::inline v0
