// Copy-on-touch under threads: every save holds each row as it was at its boundary. This program widens the
// windows between two steps of the protocol; it is linked with no other file of the library's.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace {
thread_local std::function<void(const std::string& where)> scripted;
bool past_the_first = false;

void interleave_now(const char* where) {
  if (scripted) return scripted(where);
  thread_local std::uint32_t state = std::uint32_t(std::uintptr_t(&state) >> 4) | 1;
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  if ((state & 15) == 0) std::this_thread::yield();
  if ((state & 4095) == 0) std::this_thread::sleep_for(std::chrono::microseconds(150));
}
}  // namespace
#define CHECKROW_INTERLEAVE(where) ::interleave_now(where)

#include <checkrow/checkrow.hpp>
#include <condition_variable>
#include <random>

#include "catch_shim.hpp"
#include "moody_sink.hpp"

using namespace checkrow;

namespace {

/// Two tables whose every row says in all of its columns how often it was updated.
struct stamped_model {
  static constexpr std::uint32_t dim = 6;
  struct record {
    float weights[dim];
    std::uint64_t stamp;
    float other;
  };
  std::vector<record> records;  // interleaved
  std::vector<float> weights;   // and apart
  std::vector<std::uint64_t> stamps;

  explicit stamped_model(std::size_t rows) : records(rows), weights(rows / 2 * dim), stamps(rows / 2) {}

  template <class Checkpointer>
  auto attach(Checkpointer& ckpt) {
    const std::uint64_t n = records.size();
    return std::array{
        ckpt.table("records", strided<float>{records[0].weights, sizeof(record), n}, dim,
                   {.columns = {{"stamp", strided<std::uint64_t>{&records[0].stamp, sizeof(record), n}},
                                {"other", strided<float>{&records[0].other, sizeof(record), n}}}}),
        ckpt.table("apart", weights, dim, {.columns = {{"stamp", stamps}}})};
  }

  void update(std::size_t table, std::uint64_t id) {
    if (table == 0) {
      record& r = records[id];
      for (float& w : r.weights) w += 1;
      r.stamp += 1;
      r.other += 1;
    } else {
      for (std::uint32_t d = 0; d < dim; ++d) weights[id * dim + d] += 1;
      stamps[id] += 1;
    }
  }

  [[nodiscard]] bool operator==(const stamped_model& o) const {
    for (std::size_t i = 0; i < records.size(); ++i)
      if (std::memcmp(records[i].weights, o.records[i].weights, sizeof records[i].weights) != 0 ||
          records[i].stamp != o.records[i].stamp || records[i].other != o.records[i].other)
        return false;
    return weights == o.weights && stamps == o.stamps;
  }
};

/// A state that is asked for its bytes at the boundary, and copies the model then.
struct witness {
  const stamped_model* model;
  std::shared_ptr<stamped_model> seen{};
  std::vector<std::byte> save_state() {
    seen = std::make_shared<stamped_model>(*model);
    return {};
  }
  void load_state(std::span<const std::byte>) {}
};

/// A tracker against block_tracker's text: it answers for the words of a block only once that is taken.
struct secretive {
  struct table_rows : bitmap::table_rows {
    table_rows(const secretive&, std::uint64_t rows, cursor_set kept)
        : bitmap::table_rows({}, rows, kept), taken(blocks()) {}
    void begin(row_selection selection, cursor since) noexcept {
      for (auto& one : taken) one = 0;
      bitmap::table_rows::begin(selection, since);
    }
    std::uint64_t take(std::uint64_t block) noexcept {
      taken[block] = 1;
      return bitmap::table_rows::take(block);
    }
    std::uint64_t planned(std::uint64_t block) const noexcept {
      return taken[block] ? bitmap::table_rows::planned(block) : 0;
    }
    std::uint64_t touched_in(std::uint64_t block) const noexcept {
      return taken[block] ? bitmap::table_rows::touched_in(block) : 0;
    }
    std::vector<std::atomic<char>> taken;
  };
};

void check_restores(const memory& store, const stamped_model& expected) {
  stamped_model fresh(expected.records.size());
  checkpointer ckpt{exact{}, store};
  fresh.attach(ckpt);
  witness none{&fresh};
  ckpt.state("witness", none);
  const auto found = ckpt.restore();
  REQUIRE(found.has_value());
  REQUIRE(found->passed_over.empty());
  REQUIRE(fresh == expected);
}

struct crowd {
  std::size_t rows = 3000;
  unsigned trainers = 2, workers = 1;
  unsigned saves = 20;
  std::size_t ids_a_touch = 40;
  bool skewed = true;
  bool alike = false;  ///< from each boundary on, all threads touch the same rows in the same order
};

/// Threads train while saves run; each save has to be the model at its boundary. Rows are owned by a thread
/// (row mod trainers), except that all threads touch all rows, as lookups do.
template <class Strategy>
void train_and_compare(Strategy strategy, copy_on_touch capture, crowd with, unsigned seed) {
  CAPTURE(seed, with.trainers, with.workers, with.ids_a_touch);
  memory store;
  stamped_model model(with.rows);
  witness at_boundary{&model};
  checkpointer ckpt{exact{}, strategy, store, capture, options{.workers = with.workers}};
  auto tables = model.attach(ckpt);
  ckpt.state("witness", at_boundary);
  std::atomic<bool> stop{false};
  std::atomic<unsigned> step_now{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < with.trainers; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(seed * 100 + t);
      std::vector<std::uint32_t> ids;
      unsigned seen = 0;
      while (!stop) {
        if (with.alike && seen != step_now) random.seed(seed * 1000 + (seen = step_now));
        const std::size_t table = random() % 2;
        const std::uint32_t n = std::uint32_t(table == 0 ? with.rows : with.rows / 2);
        ids.clear();
        for (std::size_t i = 0; i < with.ids_a_touch; ++i) {
          const std::uint32_t any = random() % n;
          ids.push_back(with.skewed && random() % 2 == 0 ? any % 100 : any);
        }
        const auto batch = ckpt.batch();
        if (random() % 16 == 0) {
          const std::uint64_t first = random() % (n - 70);
          tables[table].touch_range(first, 70);
          for (std::uint64_t id = first; id < first + 70; ++id)
            if (id % with.trainers == t) model.update(table, id);
        }
        tables[table].touch(ids);
        for (const std::uint32_t id : ids)
          if (id % with.trainers == t) model.update(table, id);
      }
    });
  for (unsigned step = 1; step <= with.saves; ++step) {
    const ticket saved = ckpt.save(step);
    step_now = step;
    const auto expected = at_boundary.seen;
    saved.wait();
    check_restores(store, *expected);
  }
  stop = true;
  for (std::thread& one : threads) one.join();
  ckpt.finish();
}

}  // namespace

TEST_CASE("a save under trainers holds every row as it was at its boundary") {
  unsigned seed = 1;
  for (const std::size_t ids : {1, 3, 40, 700})
    for (const unsigned workers : {1u, 2u}) {
      train_and_compare(consecutive{}, {}, {.workers = workers, .ids_a_touch = ids}, seed++);
      train_and_compare(one_shot{}, {}, {.trainers = 3, .workers = workers, .saves = 10, .ids_a_touch = ids},
                        seed++);
      train_and_compare(full{}, {}, {.workers = workers, .saves = 10, .ids_a_touch = ids, .skewed = false},
                        seed++);
    }
}

TEST_CASE("threads that meet at the same pending rows see each other's copies through") {
  for (unsigned seed = 30; seed < 34; ++seed)
    train_and_compare(full{}, {}, {.rows = 1500, .saves = 25, .skewed = false, .alike = true}, seed);
}

TEST_CASE("a row's mark follows its copy: who sees the mark may write") {
  // One thread looks at a block's state, another one captures the row, and in the midst of that the first
  // goes on. By one row a touch and by groups.
  for (const bool grouped : {false, true}) {
    moody store;
    stamped_model model(300);
    witness unused{&model};
    checkpointer ckpt{exact{}, full{}, store};
    auto tables = model.attach(ckpt);
    ckpt.state("witness", unused);
    store.mood->hangs = true;  // before the worker takes a block: the segment's header hangs
    const ticket saved = ckpt.save(1);
    const stamped_model expected = model;
    tables[0].touch(std::array{4u});  // seals the block
    model.update(0, 4);
    std::atomic<bool> looked{false}, copied{false}, written{false};
    const auto wait_for = [](const std::atomic<bool>& what) {
      for (int i = 0; i < 100 && !what; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    std::thread first([&] {
      scripted = [&, once = true](const std::string& where) mutable {
        if (where != "looked" || !std::exchange(once, false)) return;
        looked = true;
        wait_for(copied);
      };
      tables[0].touch(std::array{7u});
      model.update(0, 7);
      written = true;
    });
    std::thread second([&] {
      wait_for(looked);
      scripted = [&](const std::string& where) {
        if (where != "copied" || (grouped && !std::exchange(past_the_first, true))) return;
        copied = true;
        wait_for(written);  // does not come while the block is locked, if all is well
      };
      if (grouped)
        tables[0].touch(std::array{100u, 7u});  // the first row fetches a segment
      else
        tables[0].touch(std::array{7u});
    });
    first.join();
    second.join();
    past_the_first = false;
    store.mood->hangs = false;
    saved.wait();
    check_restores(store.inner, expected);
  }
}

TEST_CASE("with hardly any aside memory touches wait, and saves are right all the same") {
  train_and_compare(full{}, {.aside_bytes = 1}, {.trainers = 3, .saves = 8, .ids_a_touch = 700}, 50);
  train_and_compare(consecutive{}, {.aside_bytes = 1}, {.trainers = 3, .workers = 2, .saves = 8}, 51);
}

TEST_CASE("generations of block states begin anew after 63 saves") {
  train_and_compare(consecutive{}, {}, {.rows = 200, .trainers = 1, .saves = 70}, 60);
}

TEST_CASE("one thread needs no scopes: it trains on while its save runs") {
  moody store;
  store.mood->microseconds = 300;
  stamped_model model(2000);
  std::mt19937 random(5);
  std::uint64_t aside = 0;
  checkpointer ckpt{exact{}, full{}, store, observer{[&](const event& e) {
                      if (e.kind == event_kind::committed) aside += e.figures->aside_rows;
                    }}};
  auto tables = model.attach(ckpt);
  witness unused{&model};
  ckpt.state("witness", unused);
  for (std::uint64_t step = 1; step <= 10; ++step) {
    const ticket saved = ckpt.save(step);
    const stamped_model expected = model;
    for (int batch = 0; batch < 20; ++batch) {
      const std::vector<std::int64_t> ids = {std::int64_t(random() % 2000), std::int64_t(random() % 2000)};
      tables[0].touch(ids);
      for (const auto id : ids) model.update(0, std::uint64_t(id));
    }
    tables[1].touch_all();
    for (std::uint64_t id = 0; id < 1000; ++id) model.update(1, id);
    saved.wait();
    check_restores(store.inner, expected);
  }
  CHECK(aside > 0);
}

TEST_CASE("an id out of range stops a touch while a save runs, as at any time") {
  moody store;
  store.mood->hangs = true;
  stamped_model model(500);
  checkpointer ckpt{exact{}, full{}, store};
  auto tables = model.attach(ckpt);
  ckpt.save(1);
  const std::vector<std::int32_t> ids = {1, 2, 500, 3};
  const status refused = tables[0].try_touch(ids);
  CHECK(!refused);
  CHECK(tables[0].dirty_rows() == 2);
  CHECK(!tables[0].try_touch(std::vector<std::int64_t>{-1}));
  store.mood->hangs = false;
  ckpt.finish();
}

TEST_CASE("a sink that hangs does not hold the trainer: the save is cancelled, its rows stay dirty") {
  moody store;
  stamped_model model(40000);
  checkpointer ckpt{exact{}, consecutive{}, store, copy_on_touch{.aside_bytes = 1, .patience_seconds = .05}};
  auto tables = model.attach(ckpt);
  witness unused{&model};
  ckpt.state("witness", unused);
  ckpt.save(1).wait();
  tables[0].touch_range(0, 40000);
  for (std::uint64_t id = 0; id < 40000; ++id) model.update(0, id);
  store.mood->hangs = true;
  const ticket hung = ckpt.save(2);
  tables[0].touch_range(0, 40000);  // far more than aside memory holds
  for (std::uint64_t id = 0; id < 40000; ++id) model.update(0, id);
  store.mood->hangs = false;
  const status outcome = hung.try_wait();
  REQUIRE(!outcome);
  CHECK(outcome.error().kind == error_kind::io);
  CHECK(outcome.error().what.find("aside memory") != std::string::npos);
  ckpt.save(3).wait();
  check_restores(store.inner, model);
}

TEST_CASE("a save that fails half-way loses no row, wherever it fails") {
  moody store;
  stamped_model model(3000);
  std::mt19937 random(9);
  checkpointer ckpt{exact{}, consecutive{}, store, options{.workers = 2}};
  auto tables = model.attach(ckpt);
  witness unused{&model};
  ckpt.state("witness", unused);
  ckpt.save(1).wait();
  for (int fails_in = 0; fails_in < 8; ++fails_in) {
    const auto train = [&] {
      std::vector<std::uint64_t> ids(200);
      for (auto& id : ids) id = random() % 3000;
      tables[0].touch(ids);
      for (const auto id : ids) model.update(0, id);
    };
    train();
    store.mood->fails_in = fails_in;
    const ticket failing = ckpt.save(2);
    train();
    const bool failed = !failing.try_wait();
    store.mood->fails_in = -1;
    CHECK((failed || fails_in > 2));
    const ticket next = ckpt.save(3);
    const stamped_model expected = model;
    train();
    next.wait();
    check_restores(store.inner, expected);
  }
}

TEST_CASE("deltas of very wide rows hold every row that changed") {
  memory store;
  constexpr std::uint32_t wide = 70000;
  std::vector<float> weights(130 * std::size_t{wide});
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = float(i % 1000);
  checkpointer ckpt{exact{}, consecutive{}, store};
  auto table = ckpt.table("wide", weights, wide);
  const auto update = [&](std::uint64_t id) {
    table.touch(std::array{id});
    weights[id * wide] += 1;
  };
  ckpt.save(1);
  for (const std::uint64_t id : {0, 9, 64, 129}) update(id);  // the first save runs yet
  const ticket saved = ckpt.save(2);
  const std::vector<float> expected = weights;
  for (const std::uint64_t id : {9, 64, 70}) update(id);
  saved.wait();
  CHECK(saved.figures().rows == 4);
  std::vector<float> fresh(weights.size());
  checkpointer again{exact{}, store};
  again.table("wide", fresh, wide);
  REQUIRE(again.restore());
  CHECK(fresh == expected);
}

TEST_CASE("a tracker that tells of its plan too late fails the save, and harms nothing") {
  memory store;
  std::vector<float> weights(40000 * 4);
  checkpointer ckpt{exact{}, consecutive{}, secretive{}, store, copy_on_touch{}};
  auto table = ckpt.table("t", weights, 4);
  ckpt.save(1).wait();
  table.touch_all();
  const ticket failed = ckpt.save(2);
  REQUIRE(!failed.try_wait());
  CHECK(failed.error()->kind == error_kind::misuse);
  CHECK(failed.error()->what.find("take()") != std::string::npos);
  table.touch_all();
  CHECK(table.dirty_rows() == 40000);
}
