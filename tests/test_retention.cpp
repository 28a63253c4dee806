// Which checkpoints stay, and what is collected: never what a kept one lists, or what somebody reads.
#include <sys/wait.h>
#include <unistd.h>

#include <checkrow/detail/garbage_collector.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "catch_shim.hpp"
#include "temporary_folder.hpp"
#include "toy_model.hpp"

using namespace checkrow;

namespace {

template <class Sink>
[[nodiscard]] std::set<std::string> names_in(Sink& sink) {
  std::set<std::string> out;
  const auto listed = unwrap(sink.list());
  for (const blob& one : listed) out.insert(one.name);
  return out;
}

[[nodiscard]] format::manifest manifest_of(const memory& store, const std::string& name) {
  const auto bytes = store.find(name);
  return unwrap(
      format::read_manifest(std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()), name));
}

/// Sequence numbers of the manifests that are there.
template <class Sink>
[[nodiscard]] std::set<std::uint64_t> sequences(Sink& sink) {
  std::set<std::uint64_t> out;
  for (const std::string& name : names_in(sink)) {
    format::blob_name parsed;
    if (format::parse_blob_name(name, parsed) && parsed.is_manifest) out.insert(parsed.sequence);
  }
  return out;
}

template <class Strategy>
void random_history(Strategy strategy, unsigned seed) {
  std::mt19937 random(seed);
  memory store;
  std::map<std::uint64_t, toy::model> at;  // by sequence
  toy::model model;
  std::uint64_t step = 0;
  const retention keep{.last = 1 + random() % 4, .every = random() % 2 * (2 + random() % 4)};
  for (int run = 0; run < 3; ++run) {
    checkpointer ckpt{exact{}, strategy, store, options{.keep = keep}};
    auto tables = model.attach(ckpt);
    if (run != 0) {
      const auto there = sequences(store);  // a rollback, now and then
      const std::uint64_t back = random() % 2 == 0 ? *there.rbegin() : *there.begin();
      const auto found = ckpt.restore({.step = back});  // in this test, step and sequence are the same
      REQUIRE(found);
      REQUIRE(model == at[back]);
    }
    for (int i = 0; i < 8; ++i) {
      model.train(tables, random, 1 + random() % 60);
      ckpt.save(++step).wait();
      at[step] = model;
      const auto blobs = names_in(store);
      const auto there = sequences(store);
      for (const std::string& name : blobs) {
        if (!name.ends_with(".manifest")) continue;
        for (const format::segment_entry& segment : manifest_of(store, name).segments)
          REQUIRE(blobs.contains(segment.name));
      }
      std::size_t n = 0;
      for (auto newest = at.rbegin(); newest != at.rend(); ++newest, ++n)
        REQUIRE(there.contains(newest->first) ==
                (n < keep.last || (keep.every != 0 && newest->first % keep.every == 0)));
    }
  }
  for (const std::uint64_t kept : sequences(store)) {
    toy::loaded read(store, {.step = kept});
    REQUIRE(read.found.ok());
    CHECK(read.values == at[kept]);
  }
}

/// Memory that counts what is opened.
struct counting {
  memory inner{};
  std::shared_ptr<int> opened = std::make_shared<int>(0);
  using writer = memory::writer;
  using reader = memory::reader;
  result<writer> create(std::string_view name) { return inner.create(name); }
  result<reader> open(std::string_view name) const { return ++*opened, inner.open(name); }
  result<std::vector<blob>> list() const { return inner.list(); }
  status remove(std::string_view name) { return inner.remove(name); }
  std::string where() const { return "counting"; }
};

/// A child process that runs `what` and then waits to be killed; ready once that is done.
class child {
 public:
  template <class What>
  explicit child(What&& what) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    id_ = ::fork();
    if (id_ == 0) {
      what();
      (void)!::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    char x = 0;
    REQUIRE(::read(ready[0], &x, 1) == 1);
    ::close(ready[0]), ::close(ready[1]);
  }
  ~child() { kill(); }
  void kill() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
    id_ = 0;
  }

 private:
  ::pid_t id_ = 0;
};

}  // namespace

TEST_CASE("nothing that a kept manifest lists is ever removed, and what is kept is what was asked for") {
  for (unsigned seed = 0; seed < 6; ++seed) {
    random_history(full{}, seed);
    random_history(one_shot{}, seed);
    random_history(consecutive{}, seed);
    random_history(intermittent{}, seed);
  }
}

TEST_CASE("retention by count, by sequence and by age") {
  const detail::kept_manifest manifest{.sequence = 12, .created = 1000, .segments = {}};
  using detail::is_kept;
  CHECK(is_kept({.last = 2}, manifest, 1, 5000));
  CHECK(!is_kept({.last = 2}, manifest, 2, 5000));
  CHECK(is_kept({.last = 0}, manifest, 0, 5000));  // the newest always stays
  CHECK(is_kept({.last = 1, .every = 4}, manifest, 9, 5000));
  CHECK(!is_kept({.last = 1, .every = 5}, manifest, 9, 5000));
  CHECK(is_kept({.last = 1, .newer_than = 60}, manifest, 9, 1059));
  CHECK(!is_kept({.last = 1, .newer_than = 60}, manifest, 9, 1060));
  CHECK(is_kept({.last = 1, .newer_than = 60}, manifest, 9, 900));  // a clock that was put back
  CHECK(is_kept({.last = 1, .newer_than = ~std::uint64_t{0}}, manifest, 9, 5000));
}

TEST_CASE("a long history is read once, not at every save; the newest are looked at again") {
  counting store;
  toy::model model;
  std::mt19937 random(1);
  checkpointer ckpt{exact{}, one_shot{}, store, options{.keep = {.last = 2, .every = 1}}};
  auto tables = model.attach(ckpt);
  for (std::uint64_t step = 1; step <= 40; ++step) {
    model.train(tables, random, 5);
    *store.opened = 0;
    ckpt.save(step).wait();
    CHECK(*store.opened <= 3);
  }
  REQUIRE(sequences(store).size() == 40);
  // Damage is seen in what would count as one of the last, and what it lists stays.
  std::string newest;
  for (const std::string& name : names_in(store))
    if (name.ends_with(".manifest")) newest = name;
  auto bytes = *store.inner.find(newest);
  bytes.at(40) ^= std::byte{1};
  store.inner.put(newest, bytes);
  *store.opened = 0;
  const auto before = names_in(store);
  model.train(tables, random, 5);
  ckpt.save(41).wait();
  CHECK(*store.opened == 3);  // the new one, the damaged one, the one before
  const auto after = names_in(store);
  CHECK(std::includes(after.begin(), after.end(), before.begin(), before.end()));
}

TEST_CASE("what another process has leased stays, until it ends, by SIGKILL too") {
  const temporary_folder folder;
  directory sink{folder.path("run"), sync_discipline::none};
  std::mt19937 random(3);
  toy::model model;
  checkpointer ckpt{exact{}, one_shot{}, sink, options{.keep = {.last = 1}}};
  auto tables = model.attach(ckpt);
  const auto save = [&](std::uint64_t step) {
    model.train(tables, random);
    ckpt.save(step).wait();
  };
  save(1);
  save(2);
  REQUIRE(sequences(sink) == std::set<std::uint64_t>{2});
  const toy::model second = model;
  std::string leased;
  for (const std::string& name : names_in(sink))
    if (name.ends_with(".manifest")) leased = name;
  child reader([&] {
    static auto lease = sink.lease(leased);
    if (!lease) ::_exit(1);
  });
  save(3);
  save(4);
  CHECK(sequences(sink) == std::set<std::uint64_t>{2, 4});
  {
    toy::loaded read(sink, {.step = 2});  // every segment of it is there
    REQUIRE(read.found.ok());
    CHECK(read.values == second);
  }
  reader.kill();
  save(5);
  CHECK(sequences(sink) == std::set<std::uint64_t>{5});
  CHECK(sink.lease(leased).error().kind == error_kind::not_found);
  CHECK(unwrap(sink.remove_unleased(leased)));
}

TEST_CASE(
    "a restore has a lease of what it reads, while it reads and no longer, whether it is whole or not") {
  for (const bool damaged : {false, true}) {
    CAPTURE(damaged);
    const temporary_folder folder;
    directory sink{folder.path("run"), sync_discipline::none};
    toy::model model;
    {
      checkpointer ckpt{exact{}, full{}, sink};
      model.attach(ckpt);
      ckpt.save(1).wait();
    }
    std::string manifest, segment;
    for (const std::string& name : names_in(sink))
      if (!name.ends_with(".lock")) (name.ends_with(".manifest") ? manifest : segment) = name;
    if (damaged) std::filesystem::resize_file(folder.path("run/" + segment), 300);
    int told = 0;
    toy::model reading;
    checkpointer ckpt{exact{}, sink, observer{[&](const event& what) {
                        if (what.kind != event_kind::progress && what.kind != event_kind::passed_over) return;
                        ++told;
                        if (what.kind == event_kind::progress) CHECK(!unwrap(sink.remove_unleased(manifest)));
                      }}};
    reading.attach(ckpt);
    const auto found = ckpt.try_restore();
    CHECK(found.ok() == !damaged);
    CHECK(told > 0);
    CHECK(unwrap(sink.remove_unleased(manifest)));
  }
}

TEST_CASE("evaluation beside a trainer that keeps one checkpoint always finds a whole one") {
  const temporary_folder folder;
  directory sink{folder.path("run"), sync_discipline::none};
  std::mt19937 random(3);
  toy::model model;
  checkpointer ckpt{exact{}, consecutive{}, sink, options{.keep = {.last = 1}}};
  auto tables = model.attach(ckpt);
  ckpt.save(1).wait();
  std::atomic<bool> stop{false};
  std::thread evaluation([&] {
    std::uint64_t newest = 1;
    for (int i = 0; i < 60; ++i) {
      toy::loaded read(sink);
      if (!read.found.ok() || !*read.found || !(*read.found)->passed_over.empty() ||
          (*read.found)->step < newest) {
        stop = true;
        CHECK(read.found.ok());
        return;
      }
      newest = (*read.found)->step;
    }
    stop = true;
  });
  std::uint64_t step = 1;
  for (; !stop; ++step) {
    model.train(tables, random);
    ckpt.save(step).wait();
    if (step % 20 == 0) tables.first.touch_all(), tables.second.touch_all();
  }
  evaluation.join();
}

TEST_CASE("what a killed run left behind is collected by the next writer of its part, and of no other") {
  const temporary_folder folder;
  const std::string path = folder.path("run");
  directory sink{path, sync_discipline::none};
  const std::string attempt = "0123456789abcdef0123456789abcdef";
  child trainer([&] {
    static toy::model model;
    static checkpointer ckpt{exact{}, one_shot{}, sink};
    model.attach(ckpt);
    ckpt.save(1).wait();
    // Killed between its segment and its manifest, and in the midst of another one.
    std::ofstream(path + "/" + format::segment_name(2, attempt, 0)) << "whole, but not committed";
    std::ofstream(path + "/" + format::segment_name(3, attempt, 0) + ".partial") << "half";
    std::ofstream(path + "/" + format::segment_name(2, attempt, 1)) << "of another part";
    std::ofstream(path + "/" + format::segment_name(3, attempt, 1) + ".partial") << "of another part";
  });
  toy::model model;
  checkpointer ckpt{exact{}, one_shot{}, sink, options{.keep = {.last = 2}}};
  model.attach(ckpt);
  REQUIRE(ckpt.restore());
  const ticket refused = ckpt.save(2);  // it lives: its part has a writer
  REQUIRE(!refused.try_wait().ok());
  CHECK(names_in(sink).contains(format::segment_name(2, attempt, 0)));
  trainer.kill();
  ckpt.save(2).wait();
  CHECK(!names_in(sink).contains(format::segment_name(2, attempt, 0)));
  CHECK(!std::filesystem::exists(path + "/" + format::segment_name(3, attempt, 0) + ".partial"));
  CHECK(names_in(sink).contains(format::segment_name(2, attempt, 1)));
  CHECK(std::filesystem::exists(path + "/" + format::segment_name(3, attempt, 1) + ".partial"));
  CHECK(sequences(sink).size() == 2);
}
