// Trains a DLRM on a click log, the built-in one or a file in Criteo's format, and checkpoints it. Killed at
// any moment and started again, it goes on from its newest checkpoint.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "checkpoints.hpp"
#include "click_log.hpp"
#include "criteo_file.hpp"
#include "evaluate.hpp"
#include "model.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "reader.hpp"
#include "report.hpp"
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

/// The width of the terminal that is written to; 0 where that is none.
std::size_t terminal_columns() {
  winsize size{};
  if (!isatty(STDOUT_FILENO)) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void print_resumed(const checkrow::restored& found) {
  for (const checkrow::error& damaged : found.passed_over)
    std::printf("passed over a checkpoint: %s\n", damaged.text().c_str());
  std::printf("resumed from checkpoint %s, at step %s: %s read in %.2f s\n",
              with_commas(found.sequence).c_str(), with_commas(found.step).c_str(),
              megabytes(found.bytes).c_str(), found.seconds);
}

/// Trains from the newest checkpoint, if there is one, to the end; the last step.
std::uint64_t train(const options& chosen, model<float>& trained, reader& batches, progress& shown,
                    report& told) {
  schedule plan{.last_step = chosen.steps, .interval = chosen.every, .threads = chosen.threads};
  std::uint64_t last = 0;
  if (chosen.checkpoints.empty()) {
    no_checkpoints none;
    print_model(trained);
    return train(trained, batches, none, shown, plan);
  }
  with_strategy(chosen.strategy, [&]<class Strategy>(Strategy) {
    const checkpoint_settings settings{
        .folder = chosen.checkpoints, .codec = codec_of(chosen.codec), .kill_in_save = chosen.kill_in_save};
    checkpoints<Strategy> saved(settings, trained, batches, shown, told);
    if (const auto found = saved.restore()) {
      plan.first_step = found->step;
      print_resumed(*found);
    } else {
      print_model(trained);
    }
    last = train(trained, batches, saved, shown, plan);
    saved.finish();
  });
  return last;
}

void run(const options& chosen) {
  report told(chosen.report);
  model<float> trained({.dim = chosen.dim, .rows = scaled_table_sizes(chosen.scale()), .seed = chosen.seed});

  const auto log = open_log(chosen, part::train, ~std::uint64_t{0});
  reader batches(*log, chosen.batch);
  progress shown(stdout, terminal_columns(), chosen.steps);
  const std::uint64_t steps = train(chosen, trained, batches, shown, told);
  if (steps == 0) throw std::runtime_error("the log holds no sample to train on");
  const auto speed = static_cast<std::uint64_t>(shown.samples_per_second());
  std::printf("trained to step %s in %.1f s, %s samples/s\n", with_commas(steps).c_str(), shown.seconds(),
              with_commas(speed).c_str());

  const log_position end = batches.position();
  if (end.malformed > 0)
    std::printf("%s of %s lines were no samples\n", with_commas(end.malformed).c_str(),
                with_commas(end.next).c_str());
  const quality found = evaluate(trained, *open_log(chosen, part::held_out, end.next));
  char parameters[17];
  std::snprintf(parameters, sizeof parameters, "%016" PRIx64, digest(trained));
  std::printf("held out: loss %.6f (%s), AUC %.4f, %s samples\n", found.loss,
              chosen.data.empty() ? "against true click probabilities" : "against labels", found.auc,
              with_commas(found.samples).c_str());
  std::printf("parameters: %s\n", parameters);
  told.write(json_line("end")
                 .add("step", steps)
                 .add("loss", found.loss)
                 .add("auc", found.auc)
                 .add("held_out", found.samples)
                 .add("samples_per_second", speed)
                 .add("parameters", parameters));
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
