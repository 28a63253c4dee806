// The training loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "model.hpp"
#include "progress.hpp"
#include "reader.hpp"

namespace dlrm {

struct schedule {
  std::uint64_t first_step = 0;  ///< batches trained before, by the run that this one resumes
  std::uint64_t last_step = 0;
  std::uint64_t interval = 500;  ///< batches between checkpoints
  std::size_t threads = 1;

  /// Batches from `step` to the next boundary: a checkpoint, or the end.
  [[nodiscard]] std::uint64_t until_boundary(std::uint64_t step) const noexcept {
    return std::min(interval - step % interval, last_step - step);
  }
};

/// Trains without saving anything: the places where a run talks to its checkpointer.
struct no_checkpoints {
  struct scope {
    void end() const noexcept {}
  };
  /// A scope around touch and update: no checkpoint begins while one is open.
  [[nodiscard]] scope begin_batch() noexcept { return {}; }
  /// The rows that this batch will read and update.
  void touch(const batch&) noexcept {}
  /// A boundary: `step` batches are trained, none is in flight.
  void boundary(std::uint64_t) noexcept {}
};

/// Trains from schedule.first_step to schedule.last_step, or to the end of the log, and returns the last
/// step. With several threads, each takes the next batch, and all update the same parameters without locks.
template <class Scalar, class Checkpoints>
std::uint64_t train(model<Scalar>& trained, reader& log, Checkpoints& checkpoints, progress& shown,
                    const schedule& plan) {
  std::atomic<std::uint64_t> steps{plan.first_step};
  std::exception_ptr failure;
  std::once_flag failed;

  const auto work = [&]() noexcept {
    try {
      workspace<Scalar> scratch;
      batch samples;
      while (log.next(samples)) {
        auto scope = checkpoints.begin_batch();
        checkpoints.touch(samples);
        trained.train(samples, scratch);
        scope.end();
        shown.trained(scratch.logits, samples.labels);

        // Whichever thread trains the last batch that was allowed is alone here: the others wait for batches.
        const std::uint64_t step = ++steps;
        const bool at_end = step == plan.last_step;
        const bool at_boundary = at_end || step % plan.interval == 0;
        if (at_boundary) checkpoints.boundary(step);
        shown.show(step, at_boundary);
        if (at_end) log.close();
        if (at_boundary && !at_end) log.allow(plan.until_boundary(step));
      }
    } catch (...) {
      std::call_once(failed, [&] { failure = std::current_exception(); });
      log.close();
    }
  };

  if (plan.first_step >= plan.last_step) return plan.first_step;
  log.allow(plan.until_boundary(plan.first_step));
  std::vector<std::thread> helpers;
  for (std::size_t t = 1; t < plan.threads; ++t) helpers.emplace_back(work);
  work();
  for (auto& helper : helpers) helper.join();
  if (!failure && steps != plan.last_step &&
      steps % plan.interval != 0) {  // the log ended between boundaries
    checkpoints.boundary(steps);
    shown.show(steps, true);
  }
  shown.end_line();
  if (failure) std::rethrow_exception(failure);
  return steps;
}

}  // namespace dlrm
