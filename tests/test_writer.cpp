// The directory sink's writer: every byte in its place whatever the sizes, and every failing call told.
// Compiled twice: as it is, and where liburing is there with CHECKROW_LIBURING, which adds its engine.
#include <fcntl.h>
#include <unistd.h>

#include <checkrow/capture/stop_and_copy.hpp>
#include <checkrow/checkpointer.hpp>
#include <checkrow/codecs/builtin.hpp>
#include <checkrow/detail/file_calls.hpp>
#include <checkrow/sinks/directory.hpp>
#include <checkrow/sinks/memory.hpp>
#include <checkrow/sinks/throttled.hpp>
#include <checkrow/strategies/full.hpp>
#include <checkrow/trackers/bitmap.hpp>
#include <fstream>
#include <random>
#include <set>

#include "sink_contract.hpp"
#include "temporary_folder.hpp"

using namespace checkrow;
using sink_contract::get;
using sink_contract::pattern;
using sink_contract::put;
namespace fs = std::filesystem;

namespace {

/// What is told of a call: fail with `why` from the `from`th one on, `times` times. 0: never.
struct fault {
  int why = 0;
  int from = 1;
  int times = 1 << 30;
  mutable std::atomic<int> calls{0};
  [[nodiscard]] bool strikes() const {
    const int call = ++calls;
    return why != 0 && call >= from && call - from < times;
  }
};

/// Lets any call fail, and watches all of them.
class faulty_calls final : public detail::file_calls {
 public:
  fault open_direct, write_direct, write_cached, sync, cut, name, grow, hint;
  std::size_t most_bytes = std::size_t(-1);  ///< of one write: the rest is a short completion
  std::int64_t alignment = -1;               ///< -1: as it is
  int no_uring = 0;
  std::atomic<bool> held{false};  ///< writes wait while it is set

  mutable std::atomic<int> in_flight{0}, most_in_flight{0}, in_flight_at_sync{0};
  mutable std::mutex mutex;
  mutable std::set<int> direct;
  mutable std::vector<std::size_t> sizes;  ///< of writes that succeeded

  int open(const char* path, int flags) const noexcept override {
    if (open_direct.strikes()) return refused(open_direct.why);
    const int got = file_calls::open(path, flags);
    const std::lock_guard lock(mutex);
    direct.insert(got);
    return got;
  }
  ::ssize_t pwrite(int to, const std::byte* bytes, std::size_t count,
                   std::uint64_t offset) const noexcept override {
    const bool is_direct = (::fcntl(to, F_GETFL) & O_DIRECT) != 0;
    const fault& mine = is_direct ? write_direct : write_cached;
    if (mine.strikes()) return refused(mine.why);
    if (is_direct) CHECK_aligned(bytes, count, offset);
    const int now = ++in_flight;
    for (int most = most_in_flight; most < now && !most_in_flight.compare_exchange_weak(most, now);) {
    }
    while (held) std::this_thread::yield();
    const ::ssize_t n = file_calls::pwrite(to, bytes, std::min(count, most_bytes), offset);
    --in_flight;
    const std::lock_guard lock(mutex);
    if (n > 0) sizes.push_back(std::size_t(n));
    return n;
  }
  int fsync(int of) const noexcept override {
    in_flight_at_sync += in_flight;
    return sync.strikes() ? refused(sync.why) : file_calls::fsync(of);
  }
  int ftruncate(int of, std::uint64_t bytes) const noexcept override {
    return cut.strikes() ? refused(cut.why) : file_calls::ftruncate(of, bytes);
  }
  int rename(const char* from, const char* to) const noexcept override {
    return name.strikes() ? refused(name.why) : file_calls::rename(from, to);
  }
  int allocate(int in, std::uint64_t offset, std::uint64_t bytes) const noexcept override {
    return grow.strikes() ? refused(grow.why) : file_calls::allocate(in, offset, bytes);
  }
  int write_back(int of, std::uint64_t offset, std::uint64_t bytes) const noexcept override {
    return hint.strikes() ? refused(hint.why) : file_calls::write_back(of, offset, bytes);
  }
  std::uint32_t direct_alignment(int of) const noexcept override {
    return alignment < 0 ? file_calls::direct_alignment(of) : std::uint32_t(alignment);
  }
  int uring_refused() const noexcept override { return no_uring; }
  std::size_t uring_bytes(std::size_t asked) const noexcept override { return std::min(asked, most_bytes); }
  int uring_result(int result) const noexcept override {
    return write_direct.strikes() ? -write_direct.why : result;
  }

  mutable std::atomic<int> unaligned{0};

 private:
  void CHECK_aligned(const std::byte* bytes, std::size_t count, std::uint64_t offset) const noexcept {
    unaligned += (std::uintptr_t(bytes) | count | offset) % 4096 != 0;
  }
  static int refused(int why) noexcept {
    errno = why;
    return -1;
  }
};

constexpr std::size_t buffer = 16384;

write_options small_buffers(const detail::file_calls* calls = &detail::system_calls) {
  write_options out;
  out.buffer_bytes = buffer;
  out.buffers = 3;
  out.threads = 2;
  out.preallocate_bytes = 5 * buffer;
  out.calls = calls;
  return out;
}

directory sink_in(const temporary_folder& folder, const write_options& options) {
  directory out{folder.path("run")};
  out.write = options;
  return out;
}

/// The ways in which full buffers can be written, for each of which a case is tried.
std::vector<std::pair<const char*, write_options>> ways(const detail::file_calls* calls) {
  write_options threads = small_buffers(calls), cached = threads, alone = threads;
  threads.uring = false;
  cached.direct = false;
  alone.uring = false, alone.buffers = 1, alone.threads = 7, alone.preallocate_bytes = 0;
  std::vector<std::pair<const char*, write_options>> out{
      {"threads", threads}, {"page cache", cached}, {"one buffer", alone}};
#if defined(CHECKROW_LIBURING)
  out.emplace_back("io_uring", small_buffers(calls));
#endif
  return out;
}

std::size_t entries(const char* folder) {
  return std::size_t(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
}
/// A ring's kernel threads go a moment after it.
std::size_t threads_left(std::size_t expected) {
  for (int i = 0; i < 500 && entries("/proc/self/task") > expected; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return entries("/proc/self/task");
}

/// Descriptors and threads are as many at the end as they were at the beginning.
struct nothing_leaks {
  std::size_t descriptors, threads;
  nothing_leaks() {
    std::thread([] {}).join();  // a sanitizer starts one of its own with the first
    descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  }
  ~nothing_leaks() {
    CHECK(entries("/proc/self/fd") == descriptors);
    CHECK(threads_left(threads) <= threads);  // less: a ring before had not quite gone when it began
  }
};

/// Appends pieces of those sizes, over and over, up to `total` bytes. The first error, or success.
status write_pieces(directory::writer& writer, const sink_contract::bytes& content,
                    const std::vector<std::size_t>& pieces) {
  std::size_t at = 0;
  for (std::size_t i = 0; at < content.size(); ++i) {
    const std::size_t n = std::min(pieces[i % pieces.size()], content.size() - at);
    if (status done = writer.append(std::span(content).subspan(at, n)); !done) return done;
    at += n;
  }
  return {};
}

bool takes_direct_writes(const temporary_folder& folder) {
  directory probe = sink_in(folder, small_buffers());
  REQUIRE(put(probe, "probe", pattern(2 * buffer)).ok());
  REQUIRE(probe.remove("probe").ok());
  return probe.notes().empty();
}

/// The bytes of a file as a plain stream reads them.
sink_contract::bytes read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("a blob has the bytes that were appended, whatever the sizes", "[writer]") {
  const temporary_folder folder;
  const nothing_leaks guard;
  faulty_calls calls;
  std::mt19937 random(1);
  const std::vector<std::size_t> edges{0,          1,      4095,       4096,          4097,
                                       buffer - 1, buffer, buffer + 1, 3 * buffer + 5};
  for (const auto& [way, options] : ways(&calls)) {
    directory store = sink_in(folder, options);
    std::vector<std::size_t> totals = edges;
    for (std::size_t whole : {2 * buffer, 3 * buffer, 6 * buffer})
      totals.insert(totals.end(), {whole - 1, whole, whole + 1});
    for (int i = 0; i < 20; ++i) totals.push_back(random() % (12 * buffer));
    for (const std::size_t total : totals) {
      CAPTURE(way, total);
      const auto content = pattern(total, unsigned(random()));
      std::vector<std::size_t> pieces{edges[random() % edges.size()], 1 + random() % (2 * buffer)};
      for (int i = 0; i < 5; ++i) pieces.push_back(edges[random() % edges.size()]);
      auto writer = store.create("blob");
      REQUIRE(writer.ok());
      REQUIRE(write_pieces(*writer, content, pieces).ok());
      const status done = writer->commit();
      CAPTURE(done.ok() ? "" : done.error().text());
      REQUIRE(done.ok());
      CHECK(read_file(folder.path("run/blob")) == content);
      CHECK(get(store, "blob") == content);
    }
  }
  CHECK(calls.in_flight_at_sync == 0);
  CHECK(calls.unaligned == 0);
}

TEST_CASE("a tiny buffer and odd options are made to fit", "[writer]") {
  const temporary_folder folder;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4097}})
    for (const std::uint32_t count : {0u, 1u, 2u}) {
      write_options options;
      options.buffer_bytes = bytes, options.buffers = count, options.threads = 0,
      options.preallocate_bytes = 1;
      directory store = sink_in(folder, options);
      REQUIRE(put(store, "blob", pattern(30'001), 777).ok());
      CHECK(get(store, "blob") == pattern(30'001));
      CHECK(store.writer_bytes() == (bytes > 4096 ? 8192u : 4096u) * std::max(count, 1u));
    }
}

TEST_CASE("directory keeps the sink contract with small buffers", "[writer][sink]") {
  const temporary_folder folder;
  for (const auto& [way, options] : ways(&detail::system_calls)) {
    CAPTURE(way);
    sink_contract::check_sink_contract([&, store = sink_in(folder, options)] {
      fs::remove_all(store.path);
      return store;
    });
  }
}

TEST_CASE("small blobs are one write, without a thread or a second descriptor", "[writer]") {
  const temporary_folder folder;
  faulty_calls calls;
  directory store = sink_in(folder, small_buffers(&calls));
  const std::size_t threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");
  auto writer = store.create("small");
  for (int i = 0; i < 100; ++i) REQUIRE(writer->append(pattern(100, unsigned(i))).ok());
  CHECK(entries("/proc/self/task") == threads);
  CHECK(entries("/proc/self/fd") == descriptors + 1);
  CHECK(calls.sizes.empty());
  REQUIRE(writer->commit().ok());
  CHECK(calls.sizes == std::vector<std::size_t>{10'000});
  CHECK(calls.grow.calls == 0);
  CHECK(calls.open_direct.calls == 0);
}

TEST_CASE("small appends are coalesced into whole buffers", "[writer]") {
  const temporary_folder folder;
  faulty_calls calls;
  write_options options = small_buffers(&calls);
  options.uring = false;
  directory store = sink_in(folder, options);
  REQUIRE(put(store, "blob", pattern(7 * buffer + 5000), 100).ok());
  std::sort(calls.sizes.begin(), calls.sizes.end());
  std::vector<std::size_t> expected(9, buffer);
  expected[0] = 5000 - 4096, expected[1] = 4096;  // through the page cache, and past it
  if (!store.notes().empty()) return;             // no direct writes here
  CHECK(calls.sizes == expected);
}

TEST_CASE("a short completion is continued", "[writer]") {
  const temporary_folder folder;
  const auto content = pattern(9 * buffer + 1234);
  for (const std::size_t most :
       {std::size_t{512}, std::size_t{4096}, std::size_t{5000}, std::size_t{12288}}) {
    faulty_calls calls;
    calls.most_bytes = most;
    for (const auto& [way, options] : ways(&calls)) {
      CAPTURE(way, most);
      directory store = sink_in(folder, options);
      const status done = put(store, "blob", content, 3000);
      CAPTURE(done.ok() ? "" : done.error().text());
      REQUIRE(done.ok());
      CHECK(read_file(folder.path("run/blob")) == content);
    }
    CHECK(calls.in_flight_at_sync == 0);
  }
}

TEST_CASE("an interrupted call is made again", "[writer]") {
  const temporary_folder folder;
  for (const auto& [way, unused] : ways(nullptr)) {
    faulty_calls calls;
    for (fault* one : {&calls.write_direct, &calls.write_cached, &calls.sync, &calls.open_direct})
      one->why = EINTR, one->times = 3;
    for (const auto& [other, options] : ways(&calls)) {
      if (std::string_view(way) != other) continue;
      CAPTURE(way);
      directory store = sink_in(folder, options);
      REQUIRE(put(store, "blob", pattern(5 * buffer + 7), 999).ok());
      CHECK(get(store, "blob") == pattern(5 * buffer + 7));
      CHECK(store.notes().empty());
    }
  }
}

TEST_CASE("a file that refuses direct writes is written through the page cache, and that is told once",
          "[writer]") {
  const temporary_folder folder;
  const auto content = pattern(8 * buffer + 99);
  const auto falls_back = [&](const char* how, faulty_calls& calls, int why) {
    for (const auto& [way, options] : ways(&calls)) {
      if (!options.direct) continue;
      CAPTURE(how, way, why);
      for (fault* one : {&calls.open_direct, &calls.write_direct}) one->calls = 0;
      directory store = sink_in(folder, options), copy = store;
      REQUIRE(put(store, "blob", content, 5000).ok());
      CHECK(read_file(folder.path("run/blob")) == content);
      auto notes = copy.notes();
      std::erase_if(notes, [](const error& note) { return note.what.find("io_uring") == 0; });
      REQUIRE(notes.size() == 1);
      CHECK(notes[0].os_error == why);
      CHECK(notes[0].what.find("O_DIRECT is refused: ") == 0);
      CHECK(notes[0].where.find(folder.path("run/")) == 0);
      CHECK_FALSE(notes[0].next.empty());
      const int opened = calls.open_direct.calls;
      REQUIRE(put(copy, "again", content, 5000).ok());
      CHECK(get(copy, "again") == content);
      CHECK(store.notes().empty());
      CHECK(calls.open_direct.calls == opened);
    }
  };
  for (const int why : {EINVAL, EOPNOTSUPP, EPERM}) {
    const nothing_leaks guard;
    faulty_calls at_open, at_first, later;
    at_open.open_direct.why = at_first.write_direct.why = later.write_direct.why = why;
    later.write_direct.from = 4;
    falls_back("open", at_open, why);
    if (!takes_direct_writes(folder)) continue;
    falls_back("first write", at_first, why);
    falls_back("a later write", later, why);
  }
  faulty_calls none, wide;
  none.alignment = 0;
  wide.alignment = 65536;  // no buffer of ours is one such block
  falls_back("statx: none", none, EOPNOTSUPP);
  falls_back("statx: too wide", wide, EINVAL);
}

TEST_CASE("a file whose blocks are larger than a page is written in its blocks", "[writer]") {
  const temporary_folder folder;
  faulty_calls calls;
  calls.alignment = 8192;
  for (const auto& [way, options] : ways(&calls)) {
    CAPTURE(way);
    directory store = sink_in(folder, options);
    REQUIRE(put(store, "blob", pattern(5 * buffer + 4096), 9999).ok());
    CHECK(get(store, "blob") == pattern(5 * buffer + 4096));
  }
}

TEST_CASE("preallocation that fails is done without", "[writer]") {
  const temporary_folder folder;
  for (const int why : {ENOSPC, EOPNOTSUPP, EINVAL})
    for (const int from : {1, 2}) {
      faulty_calls calls;
      calls.grow.why = why, calls.grow.from = from;
      for (const auto& [way, options] : ways(&calls)) {
        CAPTURE(way, why, from);
        directory store = sink_in(folder, options);
        REQUIRE(put(store, "blob", pattern(13 * buffer + 1), 5555).ok());
        CHECK(get(store, "blob") == pattern(13 * buffer + 1));
        CHECK(fs::file_size(folder.path("run/blob")) == 13 * buffer + 1);
        CHECK(store.notes().empty());
      }
    }
}

TEST_CASE("every call that fails fails the blob, and leaves nothing", "[writer]") {
  const temporary_folder folder;
  struct trial {
    const char* name;
    fault faulty_calls::*which;
    int why;
    int from;
    bool large = true;
  };
  const trial trials[] = {
      {"the first write", &faulty_calls::write_direct, ENOSPC, 1},
      {"a write in the middle", &faulty_calls::write_direct, ENOSPC, 4},
      {"a device error", &faulty_calls::write_direct, EIO, 6},
      {"the last bytes", &faulty_calls::write_cached, ENOSPC, 1},
      {"a small blob", &faulty_calls::write_cached, EDQUOT, 1, false},
      {"the file's sync", &faulty_calls::sync, EIO, 1},
      {"a small file's sync", &faulty_calls::sync, EIO, 1, false},
      {"the folder's sync", &faulty_calls::sync, EIO, 2},
      {"the cut to size", &faulty_calls::cut, EIO, 1},
      {"the rename", &faulty_calls::name, EROFS, 1},
  };
  for (const trial& one : trials) {
    faulty_calls calls;
    for (const auto& [way, options] : ways(&calls)) {
      CAPTURE(one.name, way);
      if (one.which == &faulty_calls::write_direct && !options.direct) continue;
      if (one.which == &faulty_calls::cut && (!options.direct || options.preallocate_bytes == 0)) continue;
      directory store = sink_in(folder, options);
      REQUIRE(put(store, "first", pattern(2 * buffer)).ok());  // makes the folder and syncs it
      if (!store.notes().empty()) return;                      // no direct writes here
      (calls.*one.which).why = one.why, (calls.*one.which).from = one.from, (calls.*one.which).calls = 0;
      {
        const nothing_leaks guard;
        auto writer = store.create("blob");
        REQUIRE(writer.ok());
        status done = write_pieces(*writer, pattern(one.large ? 9 * buffer + 77 : 500), {6000});
        if (!done) {
          const status again = writer->append(pattern(1));
          REQUIRE_FALSE(again.ok());
          CHECK(again.error().text() == done.error().text());
        }
        if (done) done = writer->commit();
        REQUIRE_FALSE(done.ok());
        CHECK(done.error().os_error == one.why);
        CHECK(done.error().kind == error_kind::io);
        CHECK(done.error().where.find(folder.path("run")) == 0);
        CHECK_FALSE(done.error().next.empty());
      }
      (calls.*one.which).why = 0;
      CHECK(entries(folder.path("run").c_str()) == 1);
      REQUIRE(put(store, "blob", pattern(9 * buffer)).ok());  // and the next try finds everything in order
      CHECK(get(store, "blob") == pattern(9 * buffer));
      REQUIRE(store.remove("blob").ok());
      CHECK(calls.in_flight_at_sync == 0);
    }
  }
}

TEST_CASE("a failed write-back through the page cache fails the blob", "[writer]") {
  const temporary_folder folder;
  faulty_calls calls;
  calls.hint.why = EIO;
  write_options options;
  options.direct = false, options.buffer_bytes = std::size_t{1} << 20, options.calls = &calls;
  directory store = sink_in(folder, options);
  const status done = put(store, "blob", pattern(std::size_t{3} << 20));
  REQUIRE_FALSE(done.ok());
  CHECK(done.error().os_error == EIO);
  calls.hint.why = ENOSYS;  // a file system without it does no harm
  CHECK(put(store, "blob", pattern(std::size_t{3} << 20)).ok());
  store.sync = sync_discipline::none;
  const int before = calls.hint.calls, syncs = calls.sync.calls;
  CHECK(put(store, "other", pattern(std::size_t{3} << 20)).ok());
  CHECK(calls.hint.calls == before);
  CHECK(calls.sync.calls == syncs);
}

TEST_CASE("append waits for a free buffer and takes no further memory", "[writer]") {
  const temporary_folder folder;
  const nothing_leaks guard;
  faulty_calls calls;
  write_options options = small_buffers(&calls);
  options.uring = false;
  directory store = sink_in(folder, options);
  REQUIRE(put(store, "warm", pattern(4 * buffer)).ok());
  auto writer = store.create("blob");
  calls.held = true;
  std::atomic<std::size_t> appended{0};
  std::thread trainer([&] {
    for (int i = 0; i < 20; ++i) {
      CHECK_FALSE(!writer->append(pattern(buffer, unsigned(i))));
      ++appended;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(appended <= 3);
  CHECK(calls.in_flight <= 2);
  calls.held = false;
  trainer.join();
  CHECK(calls.most_in_flight == 2);  // both threads had one
  REQUIRE(writer->commit().ok());
  CHECK(fs::file_size(folder.path("run/blob")) == 20 * buffer);
}

TEST_CASE("a blob abandoned with writes on their way leaves nothing", "[writer]") {
  const temporary_folder folder;
  for (const auto& [way, options] : ways(&detail::system_calls)) {
    CAPTURE(way);
    directory store = sink_in(folder, options);
    REQUIRE(put(store, "warm", pattern(4 * buffer)).ok());
    const nothing_leaks guard;
    for (int i = 0; i < 10; ++i) {
      auto writer = store.create("gone");
      REQUIRE(writer->append(pattern(std::size_t(i) * buffer + 10)).ok());
      if (i % 3 == 0) writer->abandon();
      if (i % 3 == 1) {
        auto other = store.create("other");
        REQUIRE(other->append(pattern(3 * buffer)).ok());
        *writer = *std::move(other);
        REQUIRE(writer->append(pattern(3 * buffer)).ok());
      }
    }
    CHECK(entries(folder.path("run").c_str()) == 1);
  }
}

TEST_CASE("appends may come from one thread after the other", "[writer]") {
  const temporary_folder folder;
  for (const auto& [way, options] : ways(&detail::system_calls)) {
    CAPTURE(way);
    directory store = sink_in(folder, options);
    auto writer = store.create("blob");
    sink_contract::bytes content;
    for (unsigned i = 0; i < 10; ++i) {
      const auto more = pattern(buffer + 1000 * i, i);
      content.insert(content.end(), more.begin(), more.end());
      std::thread([&] { CHECK(writer->append(more).ok()); }).join();
    }
    REQUIRE(writer->commit().ok());
    CHECK(read_file(folder.path("run/blob")) == content);
  }
}

TEST_CASE("an observer is told that the storage refuses direct writes", "[writer]") {
  const temporary_folder folder;
  faulty_calls calls;
  calls.open_direct.why = EINVAL;
  directory store = sink_in(folder, small_buffers(&calls));
  std::vector<std::string> told;
  std::vector<float> weights(100'000);
  checkpointer ckpt{exact{}, full{}, store, observer{[&](const event& what) {
                      if (what.kind == event_kind::fell_back) told.push_back(what.why->text());
                    }}};
  ckpt.table("t", weights, 10);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    for (float& x : weights) x += 1;
    ckpt.save(step).wait();
  }
  ckpt.finish();
  REQUIRE(told.size() == 1);
  CHECK(told[0].find("O_DIRECT is refused") != std::string::npos);
  std::vector<float> restored(100'000);
  checkpointer again{store};
  again.table("t", restored, 10);
  CHECK(again.restore()->step == 3);
  CHECK(restored == weights);
}

#if defined(CHECKROW_LIBURING)
TEST_CASE("a refused io_uring is replaced by threads, and that is told once", "[writer]") {
  const temporary_folder folder;
  faulty_calls calls;
  calls.no_uring = EPERM;
  directory store = sink_in(folder, small_buffers(&calls));
  for (int i = 0; i < 2; ++i) {
    REQUIRE(put(store, "blob", pattern(9 * buffer + 3), 4000).ok());
    CHECK(get(store, "blob") == pattern(9 * buffer + 3));
    const auto notes = store.notes();
    REQUIRE(notes.size() == (i == 0 ? 1u : 0u));
    if (i == 0) CHECK(notes[0].what.find("io_uring is refused") == 0);
  }
}
#endif

// ------------------------------------------------------------------------------------------------- throttled

namespace {

/// Time that passes only by sleeping.
struct fake_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<fake_clock>;
  static inline time_point current{};
  static time_point now() { return current; }
  static void sleep_until(time_point when) { current = std::max(current, when); }
  static double seconds() { return std::chrono::duration<double>(current.time_since_epoch()).count(); }
};

}  // namespace

TEST_CASE("throttled keeps the sink contract", "[sink]") {
  const temporary_folder folder;
  sink_contract::check_sink_contract([&] { return throttled{directory{folder.path()}, 1e9, 1e9}; });
}

TEST_CASE("throttled writes and reads at the rates that it was given", "[sink]") {
  fake_clock::current = {};
  throttled<memory, fake_clock> store{{}, 1e6, 4e6};
  auto copy = store;
  const auto content = pattern(500'000);
  REQUIRE(put(store, "a", content, 7'000).ok());
  CHECK(fake_clock::seconds() == Approx(0.5).epsilon(1e-3));
  REQUIRE(put(copy, "b", content).ok());
  CHECK(fake_clock::seconds() == Approx(1.0).epsilon(1e-3));
  CHECK(get(store, "a") == content);
  CHECK(fake_clock::seconds() == Approx(1.125).epsilon(1e-3));
  fake_clock::current += std::chrono::seconds(10);  // time that was not used is not saved up
  REQUIRE(put(store, "c", content).ok());
  CHECK(fake_clock::seconds() == Approx(11.625).epsilon(1e-3));
  store.bytes_per_second = store.read_bytes_per_second = 0;  // as fast as it goes
  REQUIRE(put(store, "d", content).ok());
  CHECK(get(store, "d") == content);
  CHECK(fake_clock::seconds() == Approx(11.625).epsilon(1e-3));
}

TEST_CASE("a throttled save takes the time that its bytes take", "[sink]") {
  std::vector<float> weights(50'000);
  checkpointer ckpt{exact{}, throttled{memory{}, 1e6}};
  ckpt.table("t", weights, 10);
  const auto start = std::chrono::steady_clock::now();
  ckpt.save(1).wait();
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(200));
}
