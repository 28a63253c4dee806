// every{}: due by batches, samples and seconds, for exactly one of the threads that ask.
#include <algorithm>
#include <array>
#include <barrier>
#include <checkrow/due.hpp>
#include <thread>
#include <vector>

#include "catch_shim.hpp"

using namespace checkrow;

namespace {

using steps = std::vector<std::uint64_t>;

/// The steps from first to last, by `stride`, at which it is due; each step has 32 samples.
steps due_steps(every::timer& timer, std::uint64_t first, std::uint64_t last, std::uint64_t stride = 1) {
  steps out;
  for (std::uint64_t step = first; step <= last; step += stride)
    if (timer.due(step, step * 32)) out.push_back(step);
  return out;
}

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// Seconds since it was made: what a timer has to say within its interval is only checked where this process
/// was not held up for longer.
struct stopwatch {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

}  // namespace

TEST_CASE("due by batches, at whole multiples", "[due]") {
  every::timer timer(every{.batches = 5});
  CHECK(due_steps(timer, 0, 17) == steps{5, 10, 15});
  CHECK_FALSE(timer.due(17, 0));
  CHECK_FALSE(timer.due(3, 0));  // a step that is behind
  CHECK(timer.due(20, 0));
  CHECK_FALSE(timer.due(20, 0));  // asked again

  every::timer each(every{.batches = 1});
  CHECK(due_steps(each, 1, 4) == steps{1, 2, 3, 4});
}

TEST_CASE("due once after a jump over several multiples", "[due]") {
  every::timer timer(every{.batches = 10});
  CHECK(timer.due(57, 0));
  CHECK_FALSE(timer.due(57, 0));
  CHECK(due_steps(timer, 58, 75) == steps{60, 70});
  every::timer strided(every{.batches = 10});
  CHECK(due_steps(strided, 7, 49, 7) == steps{14, 21, 35, 42});  // the first step past each multiple
}

TEST_CASE("due by samples, whatever the size of a batch", "[due]") {
  every::timer timer(every{.samples = 100});
  CHECK(due_steps(timer, 1, 10) == steps{4, 7, 10});  // 128, 224, 320
  CHECK_FALSE(timer.due(11, 399));
  CHECK(timer.due(11, 400));
  CHECK(timer.due(12, 5'000));  // a jump
  CHECK_FALSE(timer.due(12, 5'099));
  CHECK(timer.due(13, 5'100));
  CHECK_FALSE(timer.due(14, 0));  // a caller that gives no samples

  every::timer large(every{.samples = 100});  // batches of more samples than that
  CHECK(large.due(1, 150));
  CHECK_FALSE(large.due(1, 150));
  CHECK(large.due(2, 300));

  every::timer exactly(every{.samples = 64});
  CHECK(due_steps(exactly, 1, 6) == steps{2, 4, 6});
}

TEST_CASE("due by whichever comes first", "[due]") {
  every::timer timer(every{.batches = 4, .samples = 96});
  CHECK(due_steps(timer, 1, 12) == steps{3, 4, 6, 8, 9, 12});
  CHECK_FALSE(timer.due(12, 12 * 32));
}

TEST_CASE("never due by a measure that was not given", "[due]") {
  every::timer never(every{});
  CHECK(due_steps(never, 0, 1000).empty());
  CHECK_FALSE(never.due(~std::uint64_t{0}, ~std::uint64_t{0}));
  every::timer negative(every{.seconds = -1});
  CHECK_FALSE(negative.due(1, 1));
}

TEST_CASE("due by seconds, counted from the time before", "[due]") {
  const stopwatch made;
  every::timer timer(every{.seconds = 0.05});
  const bool at_once = timer.due(1, 0);
  if (made.seconds() < 0.05) CHECK_FALSE(at_once);
  sleep_for(0.06);
  CHECK((timer.due(2, 0) || at_once));
  const stopwatch second;
  while (!timer.due(3, 0)) sleep_for(0.001);
  CHECK(second.seconds() >= 0.045);
  sleep_for(0.06);
  const stopwatch restarted;
  timer.restart(3);
  const bool after_restart = timer.due(4, 0);
  if (restarted.seconds() < 0.05) CHECK_FALSE(after_restart);

  every::timer forever(every{.seconds = 1e300});
  CHECK_FALSE(forever.due(1, 0));
}

TEST_CASE("a save that is due by batches restarts the clock", "[due]") {
  every::timer timer(every{.batches = 10, .seconds = 0.2});
  sleep_for(0.12);
  const stopwatch saved;
  CHECK(timer.due(10, 0));
  sleep_for(0.12);
  const bool again = timer.due(11, 0);  // 0.24 s after the start, 0.12 after the save
  if (saved.seconds() < 0.2) CHECK_FALSE(again);
  sleep_for(0.1);
  CHECK((timer.due(12, 0) || again));
}

TEST_CASE("a resumed run is due at the steps of one that was never killed", "[due]") {
  for (const std::uint64_t killed : {0, 1, 9, 10, 11, 29, 30}) {
    CAPTURE(killed);
    every::timer timer(every{.batches = 10});
    timer.restart(killed);
    steps expected;
    for (std::uint64_t step = killed + 1; step <= 50; ++step)
      if (step % 10 == 0) expected.push_back(step);
    CHECK(due_steps(timer, killed + 1, 50) == expected);
  }
  for (const std::uint64_t saved : {4, 7, 10}) {  // batches of 32, where it saved every 100 samples
    CAPTURE(saved);
    every::timer timer(every{.samples = 100});
    timer.restart(saved);
    steps expected;
    for (const std::uint64_t step : {4, 7, 10, 13, 16, 19, 22, 25})
      if (step > saved) expected.push_back(step);
    CHECK(due_steps(timer, saved + 1, 25) == expected);
  }
  every::timer back(every{.batches = 10});  // a rollback to an older step
  CHECK(due_steps(back, 1, 35) == steps{10, 20, 30});
  back.restart(15);
  CHECK(due_steps(back, 16, 35) == steps{20, 30});
}

TEST_CASE("due for exactly one of many threads", "[due]") {
  constexpr std::uint64_t last = 20'000, each = 10;
  every::timer timer(every{.batches = each});
  std::atomic<std::uint64_t> step{0};
  std::array<std::uint64_t, 4> due{};
  std::vector<std::thread> threads;
  for (std::uint64_t& mine : due)
    threads.emplace_back([&] {
      for (std::uint64_t now; (now = ++step) <= last;) mine += timer.due(now, 0);
    });
  for (std::thread& one : threads) one.join();
  // Threads may pass a multiple in any order, and one that is overtaken by the next finds it taken.
  const std::uint64_t all = due[0] + due[1] + due[2] + due[3];
  CHECK(all <= last / each);
  CHECK(all >= last / each / 2);

  // All ask about the same moment, due by more than one measure: whoever comes first has it alone.
  constexpr std::size_t rounds = 2'000;
  every::timer same(every{.batches = 3, .samples = 3, .seconds = 1e6});
  std::vector<std::atomic<int>> taken(rounds);
  std::barrier together(3);
  threads.clear();
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        together.arrive_and_wait();
        taken[i] += same.due(3 * i + 3, 3 * i + 3);
      }
    });
  for (std::thread& one : threads) one.join();
  CHECK(std::count(taken.begin(), taken.end(), 1) == std::ptrdiff_t(rounds));

  every::timer clock(every{.seconds = 0.1});
  sleep_for(0.11);
  const stopwatch asked;
  std::atomic<int> winners{0};
  threads.clear();
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] { winners += clock.due(1, 0); });
  for (std::thread& one : threads) one.join();
  CHECK(winners >= 1);
  if (asked.seconds() < 0.1) CHECK(winners == 1);
}
