// Batch scopes: no save's boundary falls inside one, none is held that must not be, and none is forgotten.
#include <malloc.h>

#include <array>
#include <checkrow/checkpointer.hpp>
#include <checkrow/sinks/memory.hpp>
#include <future>
#include <random>
#include <thread>

#include "catch_shim.hpp"

using namespace checkrow;
using namespace std::chrono_literals;

namespace {

/// A table of pairs: a row's two counters are updated inside one scope and are equal outside of scopes.
struct pairs {
  static constexpr std::size_t rows = 256;
  std::vector<std::int32_t> first = std::vector<std::int32_t>(rows);
  std::vector<std::int64_t> second = std::vector<std::int64_t>(rows);

  [[nodiscard]] bool torn() const {
    for (std::size_t row = 0; row < rows; ++row)
      if (first[row] != second[row]) return true;
    return false;
  }
};

using checkpointer_type = checkpointer<policies<memory>>;

auto attach(checkpointer_type& ckpt, pairs& model) {
  return ckpt.table("pairs", model.first, 1, {.columns = {{"second", model.second}}});
}

pairs restored_from(const memory& store) {
  pairs model;
  checkpointer_type reader(store);
  attach(reader, model);
  REQUIRE(reader.restore().has_value());
  return model;
}

/// Opens and ends scopes in a thread of its own, until told to stop. While a save waits for its boundary, it
/// is held, and its count stands still.
class prober {
 public:
  explicit prober(checkpointer_type& ckpt)
      : thread_([this, &ckpt] {
          while (!stop_) {
            const auto scope = ckpt.batch();
            ++opened_;
          }
        }) {
    while (opened_ == 0) std::this_thread::yield();
  }
  ~prober() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] std::uint64_t opened() const { return opened_; }
  /// Returns once no scope has been opened for a while.
  void wait_until_held() const {
    for (std::uint64_t before = opened_;; before = opened_) {
      std::this_thread::sleep_for(30ms);
      if (opened_ == before) return;
    }
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> opened_{0};
  std::thread thread_;
};

bool ready(const std::future<void>& what, std::chrono::milliseconds after = 0ms) {
  return what.wait_for(after) == std::future_status::ready;
}

/// Bytes on the heap, in all threads; 0 where a sanitizer has its own.
std::size_t heap_bytes() {
#if defined(__GLIBC__)
  return ::mallinfo2().uordblks;
#else
  return 0;
#endif
}

}  // namespace

TEST_CASE("a save waits for open scopes and holds new ones", "[batch]") {
  memory store;
  checkpointer_type ckpt{store};
  pairs model;
  auto table = attach(ckpt, model);
  const prober others(ckpt);

  auto scope = ckpt.batch();
  table.touch(std::array{7});
  model.first[7] = 1;
  auto saved = std::async(std::launch::async, [&] { ckpt.save(1).wait(); });
  others.wait_until_held();
  CHECK_FALSE(ready(saved));
  model.second[7] = 1;
  scope.end();
  scope.end();  // twice is harmless
  saved.get();
  CHECK_FALSE(restored_from(store).torn());
  CHECK(restored_from(store).first[7] == 1);
  for (const std::uint64_t before = others.opened(); others.opened() == before;) std::this_thread::yield();
}

TEST_CASE("no scope is open at the boundary itself", "[batch]") {
  struct at_boundary {
    std::atomic<int> open{0};
    int seen = 0;
    std::array<char, 1> save_state() {
      std::this_thread::sleep_for(2ms);
      seen += open;
      return {};
    }
    void load_state(std::span<const std::byte>) {}
  } watching;
  checkpointer_type ckpt{memory{}};
  ckpt.state("watching", watching);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        const auto scope = ckpt.batch();
        const auto inner = ckpt.batch();
        ++watching.open;
        --watching.open;
      }
    });
  for (std::uint64_t step = 1; step <= 20; ++step) ckpt.save(step).wait();
  stop = true;
  for (std::thread& one : threads) one.join();
  CHECK(watching.seen == 0);
}

TEST_CASE("a nested scope is never held, though a save waits", "[batch]") {
  checkpointer_type ckpt{memory{}};
  const prober others(ckpt);
  auto outer = ckpt.batch();
  auto saved = std::async(std::launch::async, [&] { ckpt.save(1).wait(); });
  others.wait_until_held();
  for (int i = 0; i < 100; ++i) {
    auto inner = ckpt.batch();
    auto innermost = ckpt.batch();
    inner.end();  // in any order
  }
  outer.end();
  outer = ckpt.batch();  // held until the save is past its boundary
  outer.end();
  saved.get();
}

TEST_CASE("a scope may move to another thread while a save waits, and be nested there", "[batch]") {
  memory store;
  checkpointer_type ckpt{store};
  pairs model;
  auto table = attach(ckpt, model);
  const prober others(ckpt);

  auto here = std::make_unique<batch_scope>(ckpt.batch());
  table.touch(std::array{3});
  model.first[3] = 5;
  auto saved = std::async(std::launch::async, [&] { ckpt.save(1).wait(); });
  others.wait_until_held();
  std::promise<void> arrived, go_on;
  std::thread there([&] {
    batch_scope mine = std::move(*here);
    batch_scope assigned = ckpt.batch();  // nested in this thread now: not held
    assigned = std::move(mine);
    arrived.set_value();
    go_on.get_future().wait();
    const auto inner = ckpt.batch();
    model.second[3] = 5;
    assigned.end();
  });
  arrived.get_future().wait();
  CHECK_FALSE(ready(saved, 30ms));
  here.reset();  // moved from: says nothing any more
  CHECK_FALSE(ready(saved, 30ms));
  go_on.set_value();
  there.join();
  saved.get();
  CHECK_FALSE(restored_from(store).torn());
  CHECK(restored_from(store).first[3] == 5);
  ckpt.save(2).wait();  // this thread is in no scope, though it opened one that it never ended
}

TEST_CASE("a scope may outlive the thread that opened it", "[batch]") {
  checkpointer_type ckpt{memory{}};
  std::unique_ptr<batch_scope> scope;
  std::thread([&] { scope = std::make_unique<batch_scope>(ckpt.batch()); }).join();
  std::thread([&] { const auto other = ckpt.batch(); }).join();  // takes no place that is still in use
  auto saved = std::async(std::launch::async, [&] { ckpt.save(1).wait(); });
  CHECK_FALSE(ready(saved, 50ms));
  scope.reset();
  saved.get();
}

TEST_CASE("save and restore inside the thread's own scope are misuse, and change nothing", "[batch]") {
  memory store;
  checkpointer_type ckpt{store};
  pairs model;
  attach(ckpt, model);
  {
    auto scope = ckpt.batch();
    const auto saved = ckpt.try_save(1);
    REQUIRE_FALSE(saved.ok());
    CHECK(saved.error().kind == error_kind::misuse);
    CHECK_FALSE(saved.error().next.empty());
    CHECK_THROWS_AS(ckpt.save(1), misuse_error);
    CHECK(ckpt.try_restore().error().kind == error_kind::misuse);
    batch_scope moved = std::move(scope);
    CHECK_FALSE(ckpt.try_save(1).ok());
    moved.end();
    CHECK(ckpt.try_save(1).ok());
  }
  ckpt.finish();

  checkpointer_type unrelated{memory{}};
  const auto scope = unrelated.batch();  // another checkpointer's scope is none of this one's
  CHECK(ckpt.try_save(2).ok());
  ckpt.finish();
}

TEST_CASE("many threads, many saves: no torn record is ever saved", "[batch]") {
  constexpr std::size_t thread_count = 4;
  memory store;
  checkpointer_type ckpt{store, options{.keep = {.last = 3}}};
  pairs model;
  auto table = attach(ckpt, model);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> batches{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < thread_count; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      const auto rows_of_mine = [&] {  // no two threads update one row
        return std::array<std::uint32_t, 3>{std::uint32_t(random() % 64 * 4 + t),
                                            std::uint32_t(random() % 64 * 4 + t), std::uint32_t(t)};
      };
      while (!stop) {
        auto scope = ckpt.batch();
        const auto ids = rows_of_mine();
        table.touch(ids);
        for (const auto id : ids) ++model.first[id];
        if (random() % 64 == 0) std::this_thread::sleep_for(100us);
        if (t == 0 && random() % 64 == 0) {  // the update is finished by another thread
          std::thread([&ids, &model, moved = std::move(scope), &ckpt]() mutable {
            const batch_scope mine = std::move(moved);
            const auto inner = ckpt.batch();
            for (const auto id : ids) ++model.second[id];
          }).join();
        } else {
          const auto inner = ckpt.batch();
          for (const auto id : ids) ++model.second[id];
        }
        ++batches;
      }
    });

  std::thread other_saver([&] {  // two threads save: one call at a time
    for (std::uint64_t step = 1000; step < 1010; ++step) {
      (void)ckpt.try_save(step);
      std::this_thread::sleep_for(3ms);
    }
  });
  std::vector<std::int32_t> before(pairs::rows);
  bool torn = false, went_back = false;
  for (std::uint64_t step = 1; step <= 25; ++step) {
    ckpt.save(step).wait();
    const pairs now = restored_from(store);
    torn = torn || now.torn();
    for (std::size_t row = 0; row < pairs::rows; ++row) went_back = went_back || now.first[row] < before[row];
    before = now.first;
  }
  stop = true;
  for (std::thread& one : threads) one.join();
  other_saver.join();
  CHECK_FALSE(torn);
  CHECK_FALSE(went_back);
  ckpt.save(26).wait();
  const pairs last = restored_from(store);
  CHECK(last.first == model.first);
  CHECK(last.second == model.second);
  CHECK(batches > 0);
}

TEST_CASE("threads and checkpointers that come and go leave nothing behind", "[batch]") {
  detail::batch_gate gate;
  const auto churn = [&](int threads) {
    for (int i = 0; i < threads; ++i)
      std::thread([&] {
        const batch_scope scope(gate);
        const batch_scope inner(gate);
      }).join();
  };
  churn(20);
  const std::size_t before = heap_bytes();
  churn(1500);
  CHECK(heap_bytes() < before + 16'000);  // a place for each thread that ever was is 1500 * 64 bytes and more

  const auto come_and_go = [](int gates) {
    for (int i = 0; i < gates; ++i) {
      detail::batch_gate another;
      const batch_scope scope(another);
    }
  };
  come_and_go(20);
  const std::size_t with_some = heap_bytes();
  come_and_go(3000);
  CHECK(heap_bytes() < with_some + 16'000);
}
