// The command line.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints.hpp"
#include "click_log.hpp"
#include "model.hpp"
#include "progress.hpp"

namespace dlrm {

struct options {
  std::size_t dim = 64;
  std::size_t batch = 128;
  std::uint64_t steps = 0;  ///< 0: see finish()
  std::uint64_t every = 0;  ///< batches between checkpoints; 0: see finish()
  std::uint64_t seed = 1;
  std::size_t threads = 1;
  std::string data;         ///< a Criteo file; empty: the built-in log
  std::string checkpoints;  ///< their folder; empty: none are written
  std::string codec = "adaptive4";
  std::string strategy = "intermittent";
  std::uint64_t kill_in_save = 0;
  std::string report;  ///< a file that figures are appended to
  bool quick = false;

  /// How many times smaller than in the default job the tables are, and the interval with them.
  [[nodiscard]] std::uint64_t scale() const noexcept { return quick ? 8 : 1; }

  /// Fills in what the flags left open. A file is read to its end unless --steps says otherwise.
  void finish() {
    if (steps == 0) steps = !data.empty() ? until_the_end : quick ? 1280 : 10000;
    if (every == 0) every = quick ? 64 : 500;
  }
};

/// "80,000 80,000 ... rows, 837,565 in all".
[[nodiscard]] inline std::string describe(const table_sizes& sizes) {
  std::string text;
  std::uint64_t sum = 0;
  for (const std::uint64_t rows : sizes) {
    text += with_commas(rows) + " ";
    sum += rows;
  }
  return text + "rows, " + with_commas(sum) + " in all";
}

[[nodiscard]] inline std::vector<std::string> names(const auto& table) {
  std::vector<std::string> out;
  for (const auto& entry : table) out.emplace_back(entry.name);
  return out;
}

/// Reads the command line; an exit code where the program has nothing more to do.
[[nodiscard]] inline std::optional<int> parse(int argc, char** argv, options& to) {
  CLI::App app{
      "Trains a DLRM on a click log.\n\nTables: 26, of " + describe(default_table_sizes) +
      " (an eighth of that with --quick).\nMLPs: bottom 13-512-256-dim, top (dim + 351)-512-256-1. Row-wise "
      "Adagrad on tables, Adagrad on MLPs.\nHeld out: every 16th sample (or line of a file)."};
  app.add_option("--dim", to.dim, "elements of a row, a multiple of 8")
      ->capture_default_str()
      ->check(CLI::Range(8, 1024));
  app.add_option("--batch", to.batch, "samples in a batch")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  app.add_option("--steps", to.steps,
                 "batches to train [10000; 1280 with --quick; a file's end with --data]");
  app.add_option("--seed", to.seed, "of the log and of the model's first weights")->capture_default_str();
  app.add_option("--threads", to.threads, "Hogwild threads; one is deterministic")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--data", to.data,
                 "a click log in Criteo's format, plain or .gz, instead of the built-in one");
  app.add_option(
      "--checkpoints", to.checkpoints,
      "save to this folder, and go on from the newest checkpoint in it; without it nothing is saved");
  app.add_option("--every", to.every, "batches between checkpoints [500; 64 with --quick]");
  app.add_option("--codec", to.codec, "of the tables' weights")
      ->capture_default_str()
      ->check(CLI::IsMember(names(codec_names)));
  app.add_option("--strategy", to.strategy, "which rows a checkpoint holds")
      ->capture_default_str()
      ->check(CLI::IsMember(names(strategy_names)));
  app.add_option("--kill-in-save", to.kill_in_save,
                 "kill this process by SIGKILL while the K-th checkpoint that it saves is half-written");
  app.add_option("--report", to.report, "append figures to this file: a JSON object a line");
  app.add_flag("--quick", to.quick, "a job of seconds, with smaller tables");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& stop) {
    return app.exit(stop);
  }
  if (to.dim % 8 != 0) {
    std::fprintf(stderr, "--dim must be a multiple of 8\n");
    return 2;
  }
  to.finish();
  return std::nullopt;
}

}  // namespace dlrm
