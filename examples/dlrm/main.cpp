// Trains a DLRM on a click log: the built-in one, or a file in Criteo's format.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "click_log.hpp"
#include "criteo_file.hpp"
#include "evaluate.hpp"
#include "model.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "reader.hpp"
#include "train.hpp"

namespace {

using namespace dlrm;

/// One of the two parts of the log that the flags name, up to sample `end`.
std::unique_ptr<sample_source> open_log(const options& chosen, part which, std::uint64_t end) {
  if (chosen.data.empty())
    return std::make_unique<click_log>(
        click_log::options{.seed = chosen.seed, .scale = chosen.scale(), .which = which, .end = end});
  criteo_file::options file{
      .path = chosen.data, .which = which, .sizes = scaled_table_sizes(chosen.scale()), .end = end};
  if (which == part::held_out)
    file.report = [](const std::string&) {};  // the training part has told them all
  return std::make_unique<criteo_file>(file);
}

std::string chain(const mlp<float>& layers) {
  std::string text;
  for (const std::size_t width : layers.widths()) text += (text.empty() ? "" : "-") + std::to_string(width);
  return text;
}

void print_model(const model<float>& trained) {
  std::uint64_t bytes = 0;
  table_sizes sizes{};
  for (std::size_t t = 0; t < table_count; ++t) {
    sizes[t] = trained.tables[t].rows;
    bytes += (trained.tables[t].weights.size() + trained.tables[t].adagrad.size()) * sizeof(float);
  }
  std::printf("tables: %s\n        x %zu = %s with Adagrad, fp32\n", describe(sizes).c_str(),
              trained.options().dim, megabytes(bytes).c_str());
  std::printf("MLPs:   bottom %s, top %s: %s parameters\n", chain(trained.bottom()).c_str(),
              chain(trained.top()).c_str(), with_commas(trained.dense.size()).c_str());
}

/// A hash of everything that was trained: equal where two runs ended with the same bits.
std::uint64_t digest(const model<float>& trained) {
  std::uint64_t hash = 0;
  const auto add = [&](const std::vector<float>& values) {
    for (const float value : values) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      hash = mix(hash ^ bits);
    }
  };
  for (const auto& table : trained.tables) {
    add(table.weights);
    add(table.adagrad);
  }
  add(trained.dense);
  add(trained.dense_adagrad);
  return hash;
}

struct outcome {
  std::uint64_t steps = 0;
  double samples_per_second = 0;
  quality held_out;
  std::uint64_t parameters = 0;  ///< their digest
};

void report(const options& chosen, const outcome& found) {
  const char* const against = chosen.data.empty() ? "against true click probabilities" : "against labels";
  std::printf("held out: loss %.6f (%s), AUC %.4f, %s samples\n", found.held_out.loss, against,
              found.held_out.auc, with_commas(found.held_out.samples).c_str());
  std::printf("parameters: %016" PRIx64 "\n", found.parameters);
  if (chosen.result.empty()) return;
  std::FILE* const file = std::fopen(chosen.result.c_str(), "w");
  if (!file) throw std::runtime_error("cannot write " + chosen.result + ": " + std::strerror(errno));
  std::fprintf(file,
               R"({"steps":%)" PRIu64 R"(,"loss":%.9f,"auc":%.6f,"held_out":%zu,"samples_per_second":%.0f,)"
               R"("parameters":"%016)" PRIx64 "\"}\n",
               found.steps, found.held_out.loss, found.held_out.auc, found.held_out.samples,
               found.samples_per_second, found.parameters);
  if (std::fclose(file) != 0) throw std::runtime_error("cannot write " + chosen.result);
}

/// The width of the terminal that is written to; 0 where that is none.
std::size_t terminal_columns() {
  winsize size{};
  if (!isatty(STDOUT_FILENO)) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void run(const options& chosen) {
  model<float> trained({.dim = chosen.dim, .rows = scaled_table_sizes(chosen.scale()), .seed = chosen.seed});
  print_model(trained);

  const auto log = open_log(chosen, part::train, ~std::uint64_t{0});
  reader batches(*log, chosen.batch);
  progress shown(stdout, terminal_columns(), chosen.steps);
  no_checkpoints checkpoints;
  const schedule plan{.last_step = chosen.steps, .interval = chosen.interval, .threads = chosen.threads};
  outcome found;
  found.steps = train(trained, batches, checkpoints, shown, plan);
  found.samples_per_second = shown.samples_per_second();
  if (found.steps == 0) throw std::runtime_error("the log holds no sample to train on");
  std::printf("trained %s batches of %zu in %.1f s, %s samples/s\n", with_commas(found.steps).c_str(),
              chosen.batch, shown.seconds(),
              with_commas(static_cast<std::uint64_t>(found.samples_per_second)).c_str());

  const log_position end = batches.position();
  if (end.malformed > 0)
    std::printf("%s of %s lines were no samples\n", with_commas(end.malformed).c_str(),
                with_commas(end.next).c_str());
  found.held_out = evaluate(trained, *open_log(chosen, part::held_out, end.next));
  found.parameters = digest(trained);
  report(chosen, found);
}

}  // namespace

int main(int argc, char** argv) {
  options chosen;
  if (const auto code = parse(argc, argv, chosen)) return *code;
  try {
    run(chosen);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "dlrm: %s\n", failure.what());
    return 1;
  }
}
