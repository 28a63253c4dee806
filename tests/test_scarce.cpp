// What a system may refuse: threads and memory. Saves and restores do with less, or fail by name and lose
// nothing. This program replaces pthread_create, pthread_cond_clockwait and operator new, so it is one of its
// own.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <new>
#include <utility>

namespace {

/// Strikes calls `from`, `from` + 1, ... of so many; counts all.
struct scarcity {
  std::atomic<long> from{-1}, times{0}, calls{0};  ///< from -1: never
  void begin(long first, long count) { calls = 0, times = count, from = first; }
  long end() { return from = -1, calls.load(); }
  bool strikes() {
    if (from < 0) return false;
    const long call = calls++;
    return call >= from && call - from < times;
  }
};
scarcity threads, memories;

/// Called in place of the next timed wait of this thread, unlocked; the wait then ends as timed out.
thread_local std::function<void()> instead_of_waiting;

}  // namespace

extern "C" int pthread_create(pthread_t* made, const pthread_attr_t* with, void* (*body)(void*),
                              void* context) {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return threads.strikes() ? EAGAIN : real(made, with, body, context);
}

extern "C" int pthread_cond_clockwait(pthread_cond_t* on, pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* until) {
  using wait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static const auto real = reinterpret_cast<wait>(::dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  if (!instead_of_waiting) return real(on, mutex, clock, until);
  pthread_mutex_unlock(mutex);
  std::exchange(instead_of_waiting, {})();
  pthread_mutex_lock(mutex);
  return ETIMEDOUT;
}

// All forms, since a sanitizer has its own of each.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return memories.strikes() ? nullptr : std::malloc(bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const got = operator new(bytes, std::nothrow);
  if (got == nullptr) throw std::bad_alloc();
  return got;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return operator new(bytes, std::nothrow);
}
[[gnu::noinline]] void operator delete(void* bytes) noexcept { std::free(bytes); }
void operator delete(void* bytes, std::size_t) noexcept { operator delete(bytes); }
void operator delete[](void* bytes) noexcept { operator delete(bytes); }
void operator delete[](void* bytes, std::size_t) noexcept { operator delete(bytes); }

#include <checkrow/checkrow.hpp>
#include <checkrow/detail/aside_pool.hpp>

#include "catch_shim.hpp"
#include "moody_sink.hpp"
#include "temporary_folder.hpp"
#include "toy_model.hpp"

using namespace checkrow;

namespace {

/// Small buffers, so that a toy's checkpoint is written by several threads.
directory small_writes(const temporary_folder& folder) {
  directory out{folder.path("run"), sync_discipline::none};
  out.write.buffer_bytes = 4096, out.write.buffers = 3, out.write.threads = 3, out.write.uring = false;
  return out;
}

/// What the codec makes of a model.
toy::model read_back(toy::model& trained) {
  memory store;
  {
    checkpointer ckpt{uniform<4>{}, full{}, store};
    trained.attach(ckpt);
    ckpt.save(1).wait();
  }
  return toy::loaded(store).values;
}

/// Trains, saves and restores in want of something; returns how often that was asked for. Whatever fails is
/// told as `kind`, and what comes after it has every row.
template <class Capture>
long run_short_of(scarcity& what, long from, long times, std::uint64_t at, std::optional<error_kind> kind) {
  CAPTURE(from, times, at);
  const temporary_folder folder;
  toy::model model;
  std::mt19937 random(7);
  std::optional<error> told;
  long calls = 0;
  {
    checkpointer ckpt{uniform<4>{}, one_shot{}, small_writes(folder), Capture{},
                      options{.workers = 3, .audit_rows = 1000}};
    auto tables = model.attach(ckpt);
    for (std::uint64_t step = 1; step < 4; ++step) {
      model.train(tables, random);
      if (step == at) what.begin(from, times);
      const auto saved = ckpt.try_save(step);
      while (saved && !saved->done()) std::this_thread::yield();
      if (step == at) calls = what.end();
      const status done = saved ? saved->try_wait() : status(saved.error());
      if (saved) CHECK(ckpt.try_finish().ok() == done.ok());
      if (!done) told = done.error();
      if (!done) CHECK(step == at);  // the next one has all that it needs
    }
    model.users[100 * toy::model::users_dim] += 1;  // and the audit is not asleep
    const status caught = ckpt.save(4).try_wait();
    REQUIRE(!caught);
    CHECK(caught.error().what.find("row 100") != std::string::npos);
    model.users[100 * toy::model::users_dim] -= 1;
  }
  toy::loaded read(small_writes(folder), {.threads = 3});
  REQUIRE(read.found.ok());
  CHECK((*read.found)->step == 3);
  CHECK(read.values == read_back(model));
  if (told) {
    REQUIRE(kind);
    CAPTURE(told->text());
    CHECK(told->kind == *kind);
  }
  return calls;
}

}  // namespace

TEST_CASE("saves do with fewer threads than they want, or with none but the trainer's") {
  for (const long times : {1L, 1L << 30})
    for (long from = 0; from < 12; ++from) {
      run_short_of<copy_on_touch>(threads, from, times, 1 + from % 2, {});
      run_short_of<stop_and_copy>(threads, from, times, 1 + from % 2, {});
    }
}

TEST_CASE("restores do with fewer threads than they want") {
  const temporary_folder folder;
  toy::model model;
  std::mt19937 random(7);
  {
    checkpointer ckpt{exact{}, consecutive{}, small_writes(folder)};
    auto tables = model.attach(ckpt);
    for (std::uint64_t step = 1; step < 5; ++step) {
      model.train(tables, random);
      ckpt.save(step).wait();
    }
  }
  for (const long times : {1L, 1L << 30})
    for (long from = 0; from < 8; ++from) {
      CAPTURE(from, times);
      threads.begin(from, times);
      toy::loaded read(small_writes(folder), {.threads = 4});
      const long asked = threads.end();
      REQUIRE(read.found.ok());
      CHECK(read.values == model);
      CHECK(asked > 2);
    }
}

TEST_CASE("memory that is refused once fails a save by name, at any call, and no row is lost") {
  for (const std::uint64_t at : {1, 2}) {
    long calls = 1, from = 0;
    for (; from < calls; from += 1 + from / 50)
      calls = run_short_of<copy_on_touch>(memories, from, 1, at, error_kind::io);
    CHECK(from > 100);
    for (calls = 1, from = 0; from < calls; from += 5)
      calls = run_short_of<stop_and_copy>(memories, from, 1, at, error_kind::io);
  }
}

// ------------------------------------------------------------------------------------------ aside memory

namespace {

/// A table of so many rows of 1 KiB, and an aside pool for it.
struct aside_table {
  explicit aside_table(std::uint64_t rows) : weights(rows * 256) {
    described.rows = rows;
    described.columns.push_back(
        {"weights", {element_type::float32, 4, 256}, reinterpret_cast<std::byte*>(weights.data()), 1024});
  }
  std::vector<float> weights;
  detail::registered_table described{};
};

/// Fills segments until there is none, without waiting for one.
std::vector<detail::aside_segment*> fill(detail::aside_pool& pool, const detail::record_layout& layout) {
  std::vector<detail::aside_segment*> out;
  for (;;) {
    instead_of_waiting = [] {};
    detail::aside_segment* const got = pool.exchange(nullptr, layout);
    instead_of_waiting = {};
    if (got == nullptr) return out;
    while (got->rows < got->capacity) got->copy(got->rows);
    out.push_back(got);
  }
}

/// How many segments a save may have with so much memory.
std::size_t segments_of(detail::aside_pool& pool, const detail::record_layout& layout, std::uint64_t memory) {
  pool.begin(memory);
  const std::size_t count = fill(pool, layout).size();
  CHECK(pool.gave_up());
  CHECK(pool.figures().aside_bytes <= std::max<std::uint64_t>(memory, 64 << 10));
  return count;
}

}  // namespace

TEST_CASE("aside memory follows its limit from save to save, and gives back what is beyond") {
  const aside_table of(100);
  detail::record_layout layout(of.described);
  layout.batch_rows = 1000;
  detail::aside_pool pool(1 << 20, 0);
  CHECK(segments_of(pool, layout, std::uint64_t(-1)) == 16);  // the policy's own limit
  CHECK(segments_of(pool, layout, 256 << 10) == 4);
  CHECK(segments_of(pool, layout, 0) == 1);
  CHECK(segments_of(pool, layout, 512 << 10) == 8);
}

TEST_CASE("a save whose states leave less room copies less aside at a time") {
  moody store;
  std::vector<float> weights(std::size_t{4000} * 256);
  std::vector<std::byte> state(1);
  struct bytes {
    std::vector<std::byte>* of;
    std::vector<std::byte> save_state() const { return *of; }
    void load_state(std::span<const std::byte>) {}
  } growing{&state};
  checkpointer ckpt{exact{}, full{}, store, options{.memory_limit = 40 << 20}};
  auto table = ckpt.table("t", weights, 256);
  ckpt.state("growing", growing);
  const auto aside_bytes = [&](std::uint64_t step) {
    store.mood->hangs = true;
    const ticket saved = ckpt.save(step);
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      store.mood->hangs = false;
    });
    table.touch_all();
    later.join();
    saved.wait();
    return saved.figures().aside_bytes;
  };
  CHECK(aside_bytes(1) > 1 << 20);
  state.resize(std::size_t{30} << 20);
  CHECK(aside_bytes(2) <= 64 << 10);  // one segment
}

TEST_CASE("a touch whose time is up takes what came free at the last moment, and else gives up the save") {
  const aside_table of(100);
  detail::record_layout layout(of.described);
  detail::aside_pool pool(1, 0);
  for (const bool in_time : {true, false}) {
    pool.begin(1);
    detail::aside_segment* const first = pool.exchange(nullptr, layout);
    REQUIRE(first != nullptr);
    first->copy(7);
    instead_of_waiting = [&] {
      if (in_time) pool.give_back(first);  // this wait ends by its deadline, though it has been woken
    };
    detail::aside_segment* const second = pool.exchange(nullptr, layout);
    CHECK(second == (in_time ? first : nullptr));
    CHECK(pool.gave_up() == !in_time);
    CHECK(pool.cancelled() == !in_time);
    if (!in_time) CHECK(pool.exchange(first, layout) == nullptr);  // at once, and so does every other touch
  }
  // The last block was captured in that moment: nothing to give up.
  pool.begin(1);
  detail::aside_segment* const only = pool.exchange(nullptr, layout);
  only->copy(7);
  instead_of_waiting = [&] { pool.walked(); };
  CHECK(pool.exchange(nullptr, layout) == nullptr);
  CHECK(!pool.gave_up());
}
