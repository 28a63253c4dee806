// Sinks: the contract, for ours and for one that a user wrote, and what only the directory sink promises.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <checkrow/checkpointer.hpp>
#include <checkrow/sinks/directory.hpp>
#include <checkrow/sinks/memory.hpp>

#include "own_policies.hpp"
#include "sink_contract.hpp"
#include "temporary_folder.hpp"

using namespace checkrow;
using sink_contract::get;
using sink_contract::listed;
using sink_contract::pattern;
using sink_contract::put;
namespace fs = std::filesystem;

TEST_CASE("memory keeps the sink contract", "[sink]") {
  sink_contract::check_sink_contract([] { return memory{}; });
}

TEST_CASE("directory keeps the sink contract", "[sink]") {
  const temporary_folder folder;
  sink_contract::check_sink_contract([&] { return directory{folder.path()}; });
}

TEST_CASE("directory keeps the sink contract without syncing", "[sink]") {
  const temporary_folder folder;
  sink_contract::check_sink_contract([&] { return directory{folder.path(), sync_discipline::none}; });
}

TEST_CASE("a user's sink is held to the same contract", "[sink]") {
  const temporary_folder folder;
  sink_contract::check_sink_contract([&] { return own::log_file(folder.path("log")); });
}

TEST_CASE("the user's sink finds its blobs again", "[sink]") {
  const temporary_folder folder;
  {
    own::log_file log(folder.path("log"));
    REQUIRE(put(log, "a", pattern(5'000, 1)).ok());
    REQUIRE(put(log, "b", pattern(6'000, 2)).ok());
    REQUIRE(log.remove("a").ok());
  }
  fs::resize_file(folder.path("log"), fs::file_size(folder.path("log")) + 7);  // a crash in the next append
  own::log_file log(folder.path("log"));
  REQUIRE(put(log, "c", pattern(7'000, 3)).ok());
  own::log_file again(folder.path("log"));
  CHECK(listed(again) == sink_contract::names{{"b", 6'000}, {"c", 7'000}});
  CHECK(get(again, "b") == pattern(6'000, 2));
  CHECK(get(again, "c") == pattern(7'000, 3));
}

namespace {

/// A table of 1000 rows in a folder, saved once more with each call of save().
struct small_trainer {
  std::vector<float> weights = std::vector<float>(2000);
  checkpointer<policies<directory>> ckpt;
  decltype(ckpt)::table_type users;

  explicit small_trainer(const std::string& path)
      : ckpt(directory{path, sync_discipline::none}), users(ckpt.table("users", weights, 2)) {}

  ticket save(std::uint64_t step) {
    users.touch_range(0, 300);
    for (std::size_t i = 0; i < 600; ++i) weights[i] += float(step);
    ticket saved = ckpt.save(step);
    (void)saved.try_wait();
    return saved;
  }
};

void write_file(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

bool ends_with_partial(const std::string& name) { return name.ends_with(".partial"); }

/// Runs `child` in a process of its own; how that ended, as waitpid() says.
template <class Child, class Meanwhile>
int in_child(Child child, Meanwhile meanwhile) {
  const ::pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  meanwhile(pid);
  int ended = -1;
  while (::waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
  }
  return ended;
}

}  // namespace

TEST_CASE("directory leaves no file of what was abandoned", "[sink]") {
  const temporary_folder folder;
  directory store{folder.path()};
  {
    auto abandoned = store.create("one"), dropped = store.create("two");
    REQUIRE(abandoned->append(pattern(100)).ok());
    REQUIRE(dropped->append(pattern(100)).ok());
    CHECK(files_in(folder.path()).size() == 2);
    abandoned->abandon();
    CHECK(files_in(folder.path()).size() == 1);
  }
  CHECK(files_in(folder.path()).empty());
}

TEST_CASE("directory makes its folder with the parents, and not before it is written to", "[sink]") {
  for (const sync_discipline sync : {sync_discipline::full, sync_discipline::none}) {
    const temporary_folder top;
    const std::string path = top.path("runs/of/today");
    directory store{path, sync};
    CHECK(listed(store).empty());
    CHECK(sink_contract::is_missing(store, "blob"));
    CHECK(store.remove("blob").error().kind == error_kind::not_found);
    CHECK(store.sweep(0).ok());
    CHECK(files_in(top.path()).empty());
    {
      const auto claimed = store.claim(0);
      REQUIRE(claimed.ok());
      REQUIRE(put(store, "blob", pattern(10)).ok());
    }
    CHECK(fs::is_directory(path));
    CHECK(get(store, "blob") == pattern(10));
    CHECK(directory{path + "/"}.claim(0).ok());  // a slash at the end is as good
  }
}

TEST_CASE("restore from a folder that does not exist finds nothing and makes nothing", "[sink]") {
  const temporary_folder top;
  {
    small_trainer trainer(top.path("missing"));
    const auto found = trainer.ckpt.try_restore();
    REQUIRE(found.ok());
    CHECK_FALSE(found->has_value());
    trainer.ckpt.finish();
  }
  CHECK(files_in(top.path()).empty());
}

TEST_CASE("directory says which path is wrong", "[sink]") {
  const temporary_folder top;
  write_file(top.path("file"), "not a folder");
  for (const std::string& path : {top.path("file"), top.path("file/below"), top.path("file/below/that")}) {
    CAPTURE(path);
    directory store{path};
    const auto typed = [&](const error& why) {
      CAPTURE(why.text());
      CHECK((why.kind == error_kind::io || why.kind == error_kind::not_found));
      CHECK(why.where.find(top.path("file")) == 0);
      CHECK_FALSE(why.next.empty());
      CHECK(why.os_error != 0);
    };
    typed(store.claim(0).error());
    typed(store.create("blob").error());
    typed(store.open("blob").error());
    typed(store.list().error());
    typed(store.remove("blob").error());
    typed(store.sweep(0).error());

    small_trainer trainer(path);
    const auto restored = trainer.ckpt.try_restore();
    REQUIRE_FALSE(restored.ok());
    typed(restored.error());
    const ticket saved = trainer.save(1);
    REQUIRE(saved.error().has_value());
    typed(*saved.error());
    CHECK_FALSE(trainer.ckpt.try_finish().ok());
  }
  CHECK(fs::file_size(top.path("file")) == 12);
}

TEST_CASE("a folder that may not be written to", "[sink]") {
  if (::geteuid() != 0) {
    std::puts("skipped: a folder that may not be written to: only root can become nobody");
    SUCCEED("skipped");
    return;
  }
  const temporary_folder top;
  REQUIRE(::chmod(top.path().c_str(), 0755) == 0);
  directory store{top.path("run")};
  REQUIRE(store.claim(0).ok());
  REQUIRE(put(store, "blob", pattern(10)).ok());
  const int ended = in_child(
      [&] {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
        const auto refused = [&](const error& why) {
          return why.kind == error_kind::io && why.os_error == EACCES && !why.next.empty() &&
                 why.where.find(top.path()) == 0;
        };
        if (!refused(store.claim(1).error())) return 2;
        if (!refused(store.claim(0).error())) return 3;
        if (!refused(store.create("other").error())) return 4;
        if (!refused(store.remove("blob").error())) return 5;
        if (!refused(directory{top.path("new/folder")}.claim(0).error())) return 6;
        if (get(store, "blob") != pattern(10)) return 7;  // readers go on
        return 0;
      },
      [](::pid_t) {});
  CHECK(WIFEXITED(ended));
  CHECK(WEXITSTATUS(ended) == 0);
}

TEST_CASE("what a killed writer leaves does no harm and is swept", "[sink]") {
  const temporary_folder folder;
  const std::string segment = "00000000000000000001-0123456789abcdef0123456789abcdef-p0000.segment";
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const int ended = in_child(
      [&] {
        directory store{folder.path()};
        const auto claimed = store.claim(0);
        auto writer = store.create(segment);
        const bool written = claimed && writer && writer->append(pattern(50'000));
        if (::write(ready[1], "x", 1) != 1 || !written) return 1;
        for (;;) ::pause();  // in the middle of its write, its lock held
      },
      [&](::pid_t pid) {
        char begun = 0;
        CHECK(::read(ready[0], &begun, 1) == 1);
        CHECK(directory{folder.path()}.claim(0).error().kind == error_kind::misuse);
        ::kill(pid, SIGKILL);
      });
  ::close(ready[0]);
  ::close(ready[1]);
  REQUIRE(WIFSIGNALED(ended));
  const auto left = files_in(folder.path());
  REQUIRE(std::any_of(left.begin(), left.end(), ends_with_partial));
  REQUIRE(left.size() == 2);  // and the lock's file, stale

  // What others keep in the folder, whatever it looks like, and another part's unfinished blob.
  fs::create_directory(folder.path("logs"));
  write_file(folder.path("logs/today.partial"), "1");
  write_file(folder.path("README.txt"), "2");
  write_file(folder.path("model.partial"), "3");
  write_file(folder.path("notes.segment"), "4");
  write_file(folder.path("latest.manifest"), "5");
  const std::string other_part =
      "00000000000000000001-0123456789abcdef0123456789abcdef-p0001.segment.partial";
  write_file(folder.path(other_part), "6");

  directory store{folder.path()};
  CHECK(sink_contract::is_missing(store, segment));
  for (const auto& [name, size] : listed(store)) {
    CAPTURE(name);
    CHECK_FALSE(ends_with_partial(name));
    CHECK(name != "logs");  // folders are no blobs
  }

  small_trainer trainer(folder.path());
  CHECK_FALSE(trainer.ckpt.restore().has_value());
  for (std::uint64_t step = 1; step <= 12; ++step) {
    const ticket saved = trainer.save(step);
    CAPTURE(step, saved.error() ? saved.error()->text() : "");
    REQUIRE_FALSE(saved.error().has_value());
  }
  CHECK_FALSE(fs::exists(folder.path(segment + ".partial")));
  for (const std::string& kept :
       {std::string("logs/today.partial"), std::string("README.txt"), std::string("model.partial"),
        std::string("notes.segment"), std::string("latest.manifest"), other_part}) {
    CAPTURE(kept);
    CHECK(fs::file_size(folder.path(kept)) == 1);
  }
  small_trainer reader(folder.path());
  const auto found = reader.ckpt.restore();
  REQUIRE(found.has_value());
  CHECK(found->step == 12);
  CHECK(found->passed_over.empty());
  CHECK(reader.weights == trainer.weights);
}
