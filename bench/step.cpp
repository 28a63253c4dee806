// What checkpoints cost a DLRM: the share of a step spent in touch, the stall of a save, its bytes, and
// samples/s with and without.
//
// Two models train on the same samples, one with checkpoints (default policies of examples/dlrm), one
// without, in turns of several checkpoints each: without, with, without, with, ... A turn begins right before
// a save and ends right before the next one would come, and with finish(): whatever a save leaves to do falls
// into its own turn.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../examples/dlrm/checkpoints.hpp"
#include "../examples/dlrm/click_log.hpp"
#include "../examples/dlrm/model.hpp"
#include "../examples/dlrm/train.hpp"

namespace {

using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

/// Seconds for which the calling thread could have run, but other threads had the cores: of this process, and
/// of whatever else runs on the machine. 0 where the kernel doesn't say.
double seconds_without_a_core() {
  double on_core = 0, waiting = 0;
  std::ifstream("/proc/thread-self/schedstat") >> on_core >> waiting;
  return 1e-9 * waiting;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

struct settings {
  std::uint64_t scale = 1;
  std::uint64_t every = 500;  ///< batches between checkpoints
  std::uint64_t saves_a_turn = 5;
  std::uint64_t turns = 4;  ///< of either kind
  std::size_t batch = 128;
};

/// Times each touch call, and saves at whole intervals alone: the end of a turn is no boundary.
class timed : public dlrm::checkpoints<checkrow::intermittent> {
 public:
  using checkpoints::checkpoints;
  std::uint64_t every = 0;
  double touch_seconds = 0;

  void touch(const dlrm::batch& of) {
    const auto start = clock_type::now();
    checkpoints::touch(of);
    touch_seconds += seconds_since(start);
  }
  void boundary(std::uint64_t step) {
    if (step % every == 0) checkpoints::boundary(step);
  }
};

/// A model, its log and its reader.
struct trainer {
  explicit trainer(const settings& chosen)
      : model({.rows = dlrm::scaled_table_sizes(chosen.scale)}),
        source({.scale = chosen.scale}),
        log(source, chosen.batch),
        nowhere(std::fopen("/dev/null", "w"), &std::fclose),
        shown(nowhere.get(), 80, dlrm::until_the_end) {}

  struct spent {
    double seconds, without_a_core;
  };

  /// Trains steps first to last - 1.
  spent train(auto& checkpoints, const settings& chosen, std::uint64_t first, std::uint64_t last) {
    const double before = seconds_without_a_core();
    dlrm::reader turn(source, chosen.batch);
    const auto start = clock_type::now();
    dlrm::train(model, turn, checkpoints, shown,
                {.first_step = first, .last_step = last, .interval = chosen.every});
    if constexpr (requires { checkpoints.finish(); }) checkpoints.finish();
    return {seconds_since(start), seconds_without_a_core() - before};
  }

  dlrm::model<float> model;
  dlrm::click_log source;
  dlrm::reader log;  ///< is what checkpoints hold the position of; stands still
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere;
  dlrm::progress shown;
};

struct figures {
  std::vector<double> without, with;              ///< samples/s of each turn
  std::vector<double> without_alone, with_alone;  ///< not counting time in which the trainer had no core
  double touch_seconds = 0, step_seconds = 0;
  bool same_parameters = false;
};

figures measure(const settings& chosen, const std::string& folder, dlrm::report& told) {
  trainer plain(chosen), saving(chosen);
  dlrm::no_checkpoints none;
  timed saved({.folder = folder}, saving.model, saving.log, saving.shown, told);
  saved.every = chosen.every;

  std::uint64_t step = chosen.every - 1;  // one short of the first save
  plain.train(none, chosen, 0, step);
  saving.train(saved, chosen, 0, step);
  saved.touch_seconds = 0;

  figures found;
  const std::uint64_t batches = chosen.every * chosen.saves_a_turn;
  const auto samples = static_cast<double>(batches * chosen.batch);
  for (std::uint64_t turn = 0; turn < chosen.turns; ++turn, step += batches) {
    const auto a = plain.train(none, chosen, step, step + batches);
    const auto b = saving.train(saved, chosen, step, step + batches);
    found.without.push_back(samples / a.seconds);
    found.with.push_back(samples / b.seconds);
    found.without_alone.push_back(samples / (a.seconds - a.without_a_core));
    found.with_alone.push_back(samples / (b.seconds - b.without_a_core));
    found.step_seconds += b.seconds;
    std::printf(
        "turn %llu: %6.0f samples/s without, %6.0f with checkpoints: %.1f %%  (no core for %.0f %%, %.0f "
        "%%)\n",
        static_cast<unsigned long long>(turn + 1), found.without.back(), found.with.back(),
        100 * found.with.back() / found.without.back(), 100 * a.without_a_core / a.seconds,
        100 * b.without_a_core / b.seconds);
    std::fflush(stdout);
  }
  found.touch_seconds = saved.touch_seconds;
  found.same_parameters = plain.model.dense == saving.model.dense;
  for (std::size_t t = 0; t < dlrm::table_count; ++t)
    found.same_parameters &= plain.model.tables[t].weights == saving.model.tables[t].weights;
  return found;
}

/// One number of a line that dlrm::json_line wrote.
double number(const std::string& line, const std::string& name) {
  const std::size_t at = line.find("\"" + name + "\":");
  return at == std::string::npos ? 0 : std::strtod(line.c_str() + at + name.size() + 3, nullptr);
}

struct saves {
  std::vector<double> delta_stall_ms, full_stall_ms, encode_s, write_s;
  double bytes = 0, full_bytes = 0;
};

saves read_saves(const std::string& path) {
  saves out;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"event\":\"checkpoint\"") == std::string::npos) continue;
    const bool full = line.find("\"kind\":\"full\"") != std::string::npos;
    (full ? out.full_stall_ms : out.delta_stall_ms).push_back(number(line, "stall_ms"));
    if (!full) out.encode_s.push_back(number(line, "encode_s"));
    out.write_s.push_back(number(line, "write_s"));
    out.bytes += number(line, "bytes");
    out.full_bytes += number(line, "full_bytes");
  }
  return out;
}

double most(const std::vector<double>& of) {
  return of.empty() ? 0 : *std::max_element(of.begin(), of.end());
}

void print(const figures& found, const saves& each, const settings& chosen, dlrm::report& told) {
  const double touch = found.touch_seconds / found.step_seconds,
               steps = double(chosen.every * chosen.saves_a_turn * chosen.turns);
  const double without = median(found.without), with = median(found.with);
  const double alone = median(found.with_alone) / median(found.without_alone);
  const std::size_t count = each.delta_stall_ms.size() + each.full_stall_ms.size();

  const auto target = [&](const char* text) {
    return chosen.scale == 1 ? text : "";
  };  // set for the default job
  std::printf("\n%-44s %12s %10s\n", "", "measured", target("target"));
  std::printf("%-44s %10.2f %% %10s\n", "touch, share of a step", 100 * touch, target("< 1 %"));
  std::printf("%-44s %9.1f us\n", "touch, a step (3,328 ids in 26 tables)",
              1e6 * found.touch_seconds / steps);
  std::printf("%-44s %12.0f\n", "samples/s without checkpoints, median", without);
  std::printf("%-44s %12.0f\n", "samples/s with, median", with);
  std::printf("%-44s %10.1f %% %10s\n", "  ratio of the medians", 100 * with / without, target(">= 97 %"));
  std::printf("%-44s %10.1f %%\n", "  had the trainer always had a core", 100 * alone);
  std::printf("%-44s %9.2f ms\n", "stall of a delta, median", median(each.delta_stall_ms));
  std::printf("%-44s %9.2f ms\n", "stall of a delta, longest", most(each.delta_stall_ms));
  std::printf("%-44s %9.2f ms\n", "stall of a full save, longest", most(each.full_stall_ms));
  std::printf("%-44s %10.2f s\n", "encoding a delta, behind, median", median(each.encode_s));
  std::printf("%-44s %10.2f s\n", "writing a checkpoint, behind, median", median(each.write_s));
  std::printf("%-44s %9.1f MB\n", "bytes a checkpoint, mean", each.bytes / double(count) / 1e6);
  std::printf("%-44s %12.1f %10s\n", "times fewer bytes than full fp32", each.full_bytes / each.bytes,
              target(">= 6"));
  std::printf("%-44s %12s\n", "same parameters with and without", found.same_parameters ? "yes" : "NO");

  told.write(dlrm::json_line("step")
                 .add("touch_share", touch)
                 .add("touch_us", 1e6 * found.touch_seconds / steps)
                 .add("samples_per_second_without", without)
                 .add("samples_per_second_with", with)
                 .add("ratio", with / without)
                 .add("ratio_with_a_core", alone)
                 .add("delta_stall_ms", median(each.delta_stall_ms))
                 .add("delta_stall_ms_longest", most(each.delta_stall_ms))
                 .add("full_stall_ms_longest", most(each.full_stall_ms))
                 .add("delta_encode_s", median(each.encode_s))
                 .add("write_s", median(each.write_s))
                 .add("checkpoint_bytes", each.bytes / double(count))
                 .add("times_fewer_bytes", each.full_bytes / each.bytes));
}

}  // namespace

int main(int argc, char** argv) {
  settings chosen;
  std::string json = "step.json";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick")
      chosen = {.scale = 8, .every = 64, .saves_a_turn = 4, .turns = 3};
    else if (word == "--turns" && i + 1 < argc)
      chosen.turns = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--json" && i + 1 < argc)
      json = argv[++i];
    else
      return std::fprintf(stderr, "usage: bench_step [--quick] [--turns N] [--json FILE]\n"), 2;
  }
  try {
    const std::string folder = json + ".checkpoints";
    std::filesystem::remove_all(folder);
    std::filesystem::remove(json);
    dlrm::report told(json);
    const figures found = measure(chosen, folder, told);
    print(found, read_saves(json), chosen, told);
    std::filesystem::remove_all(folder);
    return found.same_parameters ? 0 : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "bench_step: %s\n", failure.what());
    return 1;
  }
}
