// Saves that meet unfinished ones, and what the statistics say of all that.
#include <checkrow/checkrow.hpp>
#include <functional>

#include "catch_shim.hpp"
#include "moody_sink.hpp"
#include "temporary_folder.hpp"
#include "toy_model.hpp"

using namespace checkrow;

namespace {

/// A run whose first save is durable and whose second one hangs in the sink.
template <class Capture>
struct busy_run {
  moody store{};
  toy::model model{};
  std::mt19937 random{3};
  std::vector<event_kind> events{};
  checkpointer<policies<exact, consecutive, moody, Capture>> ckpt;
  std::pair<table_handle<bitmap, Capture>, table_handle<bitmap, Capture>> tables;
  ticket hanging;

  explicit busy_run(overlap_rule rule)
      : ckpt(store, options{.overlap = rule}, observer{[this](const event& e) { events.push_back(e.kind); }}),
        tables(model.attach(ckpt)),
        hanging(begin()) {}

  ticket begin() {
    ckpt.save(1).wait();
    model.train(tables, random);
    store.mood->hangs = true;
    return ckpt.save(2);
  }
  void release_later() {
    std::thread([mood = store.mood] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      mood->hangs = false;
    }).detach();
  }
};

template <class Capture>
void check_waiting() {
  busy_run<Capture> run(overlap_rule::wait);
  run.model.train(run.tables, run.random);
  run.release_later();
  const ticket next = run.ckpt.save(3);
  CHECK(run.hanging.done());
  CHECK(!run.hanging.error());
  next.wait();
  CHECK(next.figures().wait_seconds > .01);
  CHECK(toy::loaded(run.store.inner).values == run.model);
}

template <class Capture>
void check_skipping() {
  busy_run<Capture> run(overlap_rule::skip);
  run.model.train(run.tables, run.random);
  const auto dirty = run.tables.first.dirty_rows();
  const ticket skipped = run.ckpt.save(3);
  CHECK(skipped.done());
  CHECK(!skipped.error());
  CHECK(skipped.figures().skipped);
  CHECK(skipped.figures().step == 3);
  CHECK(run.tables.first.dirty_rows() == dirty);
  CHECK(run.events.back() == event_kind::skipped);
  CHECK(!run.hanging.done());
  CHECK(run.ckpt.snapshot().saves_skipped == 1);
  CHECK(run.ckpt.snapshot().saving);
  run.store.mood->hangs = false;
  run.ckpt.finish();  // speaks of the save that did run
  CHECK(!run.hanging.error());
  const ticket next = run.ckpt.save(4);
  next.wait();
  CHECK(!next.figures().skipped);
  CHECK(toy::loaded(run.store.inner).values == run.model);
}

template <class Capture>
void check_cancelling() {
  busy_run<Capture> run(overlap_rule::cancel);
  run.model.train(run.tables, run.random);
  run.release_later();  // a call into the sink cannot be interrupted
  const ticket next = run.ckpt.save(3);
  REQUIRE(run.hanging.done());
  REQUIRE(run.hanging.error());
  CHECK(run.hanging.error()->kind == error_kind::cancelled);
  CHECK_THROWS_AS(run.hanging.wait(), cancelled_error);
  next.wait();
  CHECK(toy::loaded(run.store.inner).values == run.model);
  for (const blob& left : *run.store.list()) CHECK(left.name.find("00002-") == std::string::npos);
  const statistics seen = run.ckpt.snapshot();
  CHECK(seen.saves_started == 3);
  CHECK(seen.saves_committed == 2);
  CHECK(seen.saves_cancelled == 1);
  CHECK(seen.saves_failed == 0);
  CHECK(seen.last_step == 3);
  CHECK(!seen.saving);
  run.ckpt.finish();
}

}  // namespace

TEST_CASE("a save that meets an unfinished one waits for it, by default") {
  check_waiting<copy_on_touch>();
  check_waiting<stop_and_copy>();
}

TEST_CASE("or is skipped: its rows stay dirty, and finish() speaks of the one that ran") {
  check_skipping<copy_on_touch>();
  check_skipping<stop_and_copy>();
}

TEST_CASE("a save that was waited for is over: the next one is not skipped") {
  memory store;
  toy::model model;
  std::mt19937 random(4);
  checkpointer ckpt{exact{}, consecutive{}, store, options{.overlap = overlap_rule::skip}};
  auto tables = model.attach(ckpt);
  for (std::uint64_t step = 0; step < 100; ++step) {
    model.train(tables, random, 3);
    const ticket saved = ckpt.save(step);
    REQUIRE(!saved.figures().skipped);
    saved.wait();
  }
}

TEST_CASE("both captures cut a table into the same chunks") {
  std::uint64_t bytes[2];
  std::vector<float> weights(std::size_t{50'000} * 16);
  const auto save = [&](auto capture, std::uint64_t& into) {
    checkpointer ckpt{exact{}, one_shot{}, memory{}, capture};
    auto table = ckpt.table("t", weights, 16);
    ckpt.save(1).wait();
    for (std::uint64_t id = 0; id < 50'000; id += 3) table.touch_range(id, 1);
    const ticket delta = ckpt.save(2);
    delta.wait();
    into = delta.figures().bytes + ckpt.snapshot().bytes_written;
  };
  save(copy_on_touch{}, bytes[0]);
  save(stop_and_copy{}, bytes[1]);
  CHECK(std::max(bytes[0], bytes[1]) - std::min(bytes[0], bytes[1]) < bytes[0] / 200);
}

TEST_CASE("what would wait for a scope of its own thread is refused") {
  memory store;
  std::vector<float> weights(64), more(64);
  std::uint64_t position = 0;
  checkpointer ckpt{store};
  ckpt.table("t", weights, 4);
  const auto batch = ckpt.batch();
  CHECK(ckpt.try_finish().error().kind == error_kind::misuse);
  CHECK(ckpt.try_table("u", more, 4).error().kind == error_kind::misuse);
  CHECK(ckpt.try_dense("d", more).error().kind == error_kind::misuse);
  CHECK(ckpt.try_state("s", position).error().kind == error_kind::misuse);
}

TEST_CASE("or cancels it: it leaves nothing, and its rows are in the later one") {
  check_cancelling<copy_on_touch>();
  check_cancelling<stop_and_copy>();
}

TEST_CASE("a memory limit bounds the copies of rows, whatever the capture's own limit") {
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{20} << 20}) {
    memory store;
    std::mt19937 random(5);
    std::vector<float> weights(std::size_t{6000} * 64);  // 1.5 MB
    std::uint64_t staged = 0;
    checkpointer staging{exact{},
                         full{},
                         store,
                         stop_and_copy{},
                         options{.memory_limit = limit},
                         observer{[&](const event& e) {
                           if (e.kind == event_kind::captured) staged = e.bytes;
                         }}};
    staging.table("t", weights, 64);
    staging.save(1).wait();
    CHECK((staged == 0) == (limit == 0));  // beyond the limit: all of it inside save()

    moody slow;
    checkpointer touching{exact{}, full{}, slow, copy_on_touch{}, options{.memory_limit = limit}};
    auto table = touching.table("t", weights, 64);
    slow.mood->microseconds = 3000;
    const ticket next = touching.save(1);
    table.touch_all();
    next.wait();
    if (limit == 0) CHECK(next.figures().aside_bytes <= 64 << 10);  // one segment
  }
}

TEST_CASE("a snapshot sums up saves and restores") {
  memory store;
  std::mt19937 random(5);
  toy::model model;
  std::uint64_t rows = 0, bytes = 0;
  checkpointer ckpt{exact{}, consecutive{}, store};
  auto tables = model.attach(ckpt);
  for (std::uint64_t step = 1; step <= 5; ++step) {
    model.train(tables, random);
    const ticket saved = ckpt.save(step * 10);
    saved.wait();
    rows += saved.figures().rows;
    bytes += saved.figures().bytes;
  }
  ckpt.restore();
  const statistics seen = ckpt.snapshot();
  CHECK(seen.saves_started == 5);
  CHECK(seen.saves_committed == 5);
  CHECK(seen.full_saves == 1);
  CHECK(seen.rows_written == rows);
  CHECK(seen.bytes_written == bytes);
  CHECK(seen.last_step == 50);
  CHECK(seen.last_sequence == 5);
  CHECK(seen.blobs_collected > 0);
  CHECK(seen.total_seconds > 0);
  CHECK(seen.restores == 1);
  CHECK(seen.bytes_restored > 0);
}

TEST_CASE("progress tells of rows, bytes and what the sink has not written yet") {
  temporary_folder folder;
  std::vector<float> weights(std::size_t{400'000} * 16);  // 26 MB
  std::uint64_t events = 0, last = 0, queued = 0;
  checkpointer ckpt{exact{}, full{}, throttled<directory>{{.path = folder.path()}, 1e8},
                    observer{[&](const event& e) {
                      if (e.kind != event_kind::progress) return;
                      ++events;
                      CHECK(e.figures != nullptr);
                      CHECK(e.total == 400'000);
                      CHECK(e.rows > last);
                      CHECK(e.rows <= e.total);
                      last = e.rows;
                      queued = std::max(queued, e.figures->queued_bytes);
                    }}};
  ckpt.table("t", weights, 16);
  const ticket saved = ckpt.save(1);
  bool running = false;
  while (!saved.done()) {
    const statistics now = ckpt.snapshot();
    running |= now.saving && now.rows_so_far > 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  saved.wait();
  CHECK(running);
  CHECK(events > 1);
  CHECK(queued > 0);
  CHECK(saved.figures().queued_bytes == 0);
  CHECK(ckpt.snapshot().queued_bytes == 0);
}

TEST_CASE("statistics as Prometheus text: help, type and value of every metric") {
  statistics some;
  some.saves_committed = 3;
  some.bytes_written = 18'000'000'000'000'000'000u;
  some.stall_seconds = 12.000034;
  some.saving = true;
  const std::string text = prometheus_text(some, "a \"b\" \\ c\nd");
  CHECK(text.find("# HELP checkrow_saves_committed_total Saves that are durable\n"
                  "# TYPE checkrow_saves_committed_total counter\n"
                  "checkrow_saves_committed_total{job=\"a \\\"b\\\" \\\\ c\\nd\"} 3\n") != std::string::npos);
  CHECK(text.find("} 18000000000000000000\n") != std::string::npos);
  CHECK(text.find("checkrow_stall_seconds_total{job=\"a \\\"b\\\" \\\\ c\\nd\"} 12.000034\n") !=
        std::string::npos);
  CHECK(prometheus_text(some).find("\ncheckrow_saving 1\n") != std::string::npos);
}

TEST_CASE("An observer may take figures until the last save is done, in the checkpointer's destructor") {
  std::vector<float> weights(std::size_t{100'000} * 16);
  std::uint64_t committed = 0;
  std::function<statistics()> figures;
  {
    checkpointer ckpt{exact{}, full{}, throttled<memory>{{}, 1e8}, observer{[&](const event& e) {
                        if (e.kind == event_kind::committed) committed = figures().saves_committed;
                      }}};
    figures = [&] { return ckpt.snapshot(); };
    ckpt.table("t", weights, 16);
    ckpt.save(1);
  }
  CHECK(committed == 1);
}
