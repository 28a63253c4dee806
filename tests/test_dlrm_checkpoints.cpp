// The DLRM example killed and resumed: no sample lost or seen twice, and nothing else lost either.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../examples/dlrm/checkpoints.hpp"
#include "../examples/dlrm/click_log.hpp"
#include "../examples/dlrm/evaluate.hpp"
#include "../examples/dlrm/train.hpp"
#include "catch_shim.hpp"
#include "dlrm_parameters.hpp"
#include "temporary_folder.hpp"

namespace {

constexpr std::uint64_t tiny = 1000;  // the tables this many times smaller: 10 to 80 rows
constexpr std::uint64_t steps = 60, interval = 8, batch_size = 32;

dlrm::model<float> small_model() {
  return dlrm::model<float>(
      {.dim = 16, .rows = dlrm::scaled_table_sizes(tiny), .bottom_hidden = {24, 16}, .top_hidden = {32, 8}});
}

/// A run of the trainer, and how it dies.
struct job {
  std::string codec = "exact";
  std::string strategy = "intermittent";
  std::size_t threads = 1;
  std::uint64_t kill_in_save = 0;   ///< 0: not
  std::uint64_t kill_at_batch = 0;  ///< of this process; 0: not
};

/// Writes which samples were trained between which steps, so that a process that is killed leaves it behind.
template <class Strategy>
class counting : public dlrm::checkpoints<Strategy> {
  using base = dlrm::checkpoints<Strategy>;

 public:
  counting(const job& what, const std::string& diary, const dlrm::checkpoint_settings& chosen,
           dlrm::model<float>& trained, dlrm::reader& log, dlrm::progress& shown, dlrm::report& told)
      : base(chosen, trained, log, shown, told),
        kill_at_batch_(what.kill_at_batch),
        diary_(diary, std::ios::app) {}

  std::uint64_t resume() {
    const auto found = base::restore();
    const std::uint64_t step = found ? found->step : 0;
    diary_ << "from " << step << std::endl;
    return step;
  }
  void touch(const dlrm::batch& of) {
    {
      const std::lock_guard lock(mutex_);
      samples_.insert(samples_.end(), of.indices.begin(), of.indices.end());
      if (++batches_ == kill_at_batch_) std::raise(SIGKILL);
    }
    base::touch(of);
  }
  void boundary(std::uint64_t step) {
    diary_ << "to " << step;
    for (const std::uint64_t sample : samples_) diary_ << ' ' << sample;
    diary_ << std::endl;
    samples_.clear();
    base::boundary(step);
  }

 private:
  std::uint64_t kill_at_batch_;
  std::ofstream diary_;
  std::mutex mutex_;
  std::uint64_t batches_ = 0;
  std::vector<std::uint64_t> samples_;
};

/// The samples that the final model has learnt from: what was trained after a checkpoint that a later process
/// resumed from is forgotten.
std::multiset<std::uint64_t> learnt_from(const std::string& diary) {
  std::ifstream in(diary);
  std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>> intervals;
  for (std::string line, word; std::getline(in, line);) {
    std::istringstream words(line);
    std::uint64_t step = 0, sample = 0;
    words >> word >> step;
    if (word == "from") {
      std::erase_if(intervals, [&](const auto& one) { return one.first > step; });
    } else {
      intervals.emplace_back(step, std::vector<std::uint64_t>{});
      while (words >> sample) intervals.back().second.push_back(sample);
    }
  }
  std::multiset<std::uint64_t> all;
  for (const auto& [step, samples] : intervals) all.insert(samples.begin(), samples.end());
  return all;
}

/// Trains in this process, from the newest checkpoint in `folder` on; the final parameters.
std::vector<float> run(const job& what, const temporary_folder& folder) {
  dlrm::model<float> trained = small_model();
  dlrm::click_log source({.scale = tiny});
  dlrm::reader log(source, batch_size, 3);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), &std::fclose);
  dlrm::progress shown(nowhere.get(), 80, steps);
  dlrm::report told(folder.path("report.json"));
  dlrm::with_strategy(what.strategy, [&]<class Strategy>(Strategy) {
    const dlrm::checkpoint_settings settings{.folder = folder.path("checkpoints"),
                                             .codec = dlrm::codec_of(what.codec),
                                             .kill_in_save = what.kill_in_save};
    counting<Strategy> saved(what, folder.path("diary"), settings, trained, log, shown, told);
    dlrm::schedule plan{.last_step = steps, .interval = interval, .threads = what.threads};
    plan.first_step = saved.resume();
    dlrm::train(trained, log, saved, shown, plan);
    saved.finish();
  });
  return all_parameters(trained);
}

/// The same in a child that has to die of SIGKILL.
void run_and_die(const job& what, const temporary_folder& folder) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stdout)) _exit(2);
    try {
      run(what, folder);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "child: %s\n", failure.what());
    }
    _exit(1);  // it should be dead
  }
  REQUIRE(child > 0);
  int how = 0;
  REQUIRE(waitpid(child, &how, 0) == child);
  REQUIRE(WIFSIGNALED(how));
  REQUIRE(WTERMSIG(how) == SIGKILL);
}

bool half_written(const temporary_folder& folder) {
  const std::filesystem::directory_iterator files(folder.path("checkpoints"));
  return std::any_of(begin(files), end(files),
                     [](const auto& file) { return file.path().extension() == ".partial"; });
}

std::vector<nlohmann::json> lines_of(const std::string& path, const std::string& event) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (auto object = nlohmann::json::parse(line); object.at("event") == event) lines.push_back(object);
  return lines;
}

/// Killed inside its first save, at an arbitrary batch, and inside a later save, and then left in peace.
std::vector<float> run_with_three_deaths(job what, const temporary_folder& folder) {
  what.kill_in_save = 1;
  run_and_die(what, folder);
  CHECK(half_written(folder));
  what.kill_in_save = 0, what.kill_at_batch = 29;
  run_and_die(what, folder);
  what.kill_at_batch = 0, what.kill_in_save = 2;
  run_and_die(what, folder);
  CHECK(half_written(folder));
  what.kill_in_save = 0;
  auto parameters = run(what, folder);
  CHECK(!half_written(folder));
  return parameters;
}

}  // namespace

TEST_CASE("dlrm checkpoints: killed three times, an exact run ends with the bytes of one that never was") {
  job what;
  const temporary_folder in_peace;
  const std::vector<float> expected = run(what, in_peace);
  const auto samples = learnt_from(in_peace.path("diary"));
  CHECK(samples.size() == steps * batch_size);
  CHECK(std::set<std::uint64_t>(samples.begin(), samples.end()).size() == samples.size());
  for (const auto& strategy : dlrm::strategy_names) {
    what.strategy = strategy.name;
    INFO(what.strategy);
    const temporary_folder folder;
    CHECK(run_with_three_deaths(what, folder) == expected);
    CHECK(learnt_from(folder.path("diary")) == samples);
    const auto resumed = lines_of(folder.path("report.json"), "resumed");
    REQUIRE(resumed.size() == 2);  // the first death left nothing to resume from
    CHECK(resumed[0].at("step").get<std::uint64_t>() >= 2 * interval);
    CHECK(resumed[1].at("step").get<std::uint64_t>() > resumed[0].at("step").get<std::uint64_t>());
  }
}

TEST_CASE("dlrm checkpoints: killed three times, two Hogwild threads lose no sample and see none twice") {
  const job what{.threads = 2};
  const temporary_folder in_peace, folder;
  run(what, in_peace);
  run_with_three_deaths(what, folder);
  CHECK(learnt_from(folder.path("diary")) == learnt_from(in_peace.path("diary")));
}

TEST_CASE("dlrm checkpoints: every codec resumes, and changes little") {
  const temporary_folder in_peace;
  const std::vector<float> expected = run({}, in_peace);
  for (const auto& codec : dlrm::codec_names) {
    INFO(codec.name);
    const temporary_folder folder;
    const std::vector<float> found = run_with_three_deaths({.codec = std::string(codec.name)}, folder);
    CHECK(learnt_from(folder.path("diary")) == learnt_from(in_peace.path("diary")));
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      difference += std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
      size += std::abs(static_cast<double>(expected[i]));
    }
    CHECK(difference <= 0.5 * size);
    CHECK((difference == 0) == (codec.name == "exact"));
  }
}

TEST_CASE("dlrm checkpoints: the report has a line for each checkpoint") {
  const temporary_folder folder;
  run({}, folder);
  const auto lines = lines_of(folder.path("report.json"), "checkpoint");
  REQUIRE(lines.size() == 8);  // 8, 16, ..., 56 and the end, 60
  CHECK(lines[0].at("kind") == "full");
  CHECK(lines[0].at("rows") == lines[0].at("total_rows"));
  CHECK(lines[0].at("bytes") >= lines[0].at("full_bytes"));
  CHECK(lines[1].at("kind") == "delta");
  CHECK(lines[1].at("rows") == lines[1].at("touched_rows"));
  CHECK(lines[7].at("step") == steps);
  CHECK(lines[7].at("sequence") == 8);
  for (const auto& line : lines) {
    CHECK(line.at("stall_ms").get<double>() > 0);
    CHECK(line.at("touched_rows") <= line.at("rows"));
  }
}

namespace {

/// Touches within scopes; another thread saves whenever it likes, and no boundary matters.
struct scoped_only {
  checkrow::checkpointer<checkrow::policies<checkrow::directory>>& ckpt;
  std::vector<checkrow::table_handle<checkrow::bitmap, checkrow::copy_on_touch>> tables;
  dlrm::reader& log;
  std::atomic<bool> enough{false};

  checkrow::batch_scope begin_batch() { return ckpt.batch(); }
  void touch(const dlrm::batch& of) {
    for (std::size_t t = 0; t < tables.size(); ++t) tables[t].touch(of.rows[t]);
  }
  void boundary(std::uint64_t) {
    if (enough) log.close();
  }
};

void register_model(auto& ckpt, dlrm::model<float>& of, auto&& each) {
  for (auto& table : of.tables)
    each(ckpt.table(table.name, table.weights, table.dim, {.columns = {{"adagrad", table.adagrad}}}));
  ckpt.dense("mlp", of.dense);
  ckpt.dense("mlp_adagrad", of.dense_adagrad);
}

}  // namespace

TEST_CASE("dlrm checkpoints: saved beside Hogwild threads, every record is of the instant of the save") {
  const temporary_folder folder;
  const checkrow::directory to{folder.path("checkpoints"), checkrow::sync_discipline::none};
  dlrm::model<float> trained = small_model();
  std::vector<float> at_the_boundary;
  {
    dlrm::click_log source({.scale = tiny});
    dlrm::reader log(source, batch_size, 3);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), &std::fclose);
    dlrm::progress shown(nowhere.get(), 80, dlrm::until_the_end);
    checkrow::checkpointer<checkrow::policies<checkrow::directory>> ckpt(
        to, checkrow::observer{[&](const checkrow::event& what) {  // no scope is open: the model stands still
          if (what.kind == checkrow::event_kind::sealed) at_the_boundary = all_parameters(trained);
        }});
    scoped_only hogwild{ckpt, {}, log};
    register_model(ckpt, trained, [&](auto handle) { hogwild.tables.push_back(handle); });
    std::thread saver([&] {
      for (std::uint64_t save = 1; save <= 12; ++save) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        ckpt.save(save).wait();
      }
      hogwild.enough = true;
    });
    dlrm::train(trained, log, hogwild, shown,
                {.last_step = dlrm::until_the_end, .interval = interval, .threads = 3});
    saver.join();
    ckpt.finish();
  }
  CHECK(all_parameters(trained) != at_the_boundary);  // the threads went on
  dlrm::model<float> restored = small_model();
  checkrow::checkpointer ckpt{to};
  register_model(ckpt, restored, [](auto) {});
  const auto found = ckpt.restore();
  REQUIRE(found);
  CHECK(found->step == 12);
  CHECK(all_parameters(restored) == at_the_boundary);
}
