// The DLRM example's model and training loop.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "../examples/dlrm/click_log.hpp"
#include "../examples/dlrm/evaluate.hpp"
#include "../examples/dlrm/model.hpp"
#include "../examples/dlrm/train.hpp"
#include "catch_shim.hpp"
#include "dlrm_parameters.hpp"

namespace {

constexpr std::uint64_t tiny = 2000;  // the tables this many times smaller: 10 to 40 rows

dlrm::model_options small_model() {
  return {
      .dim = 16, .rows = dlrm::scaled_table_sizes(tiny), .bottom_hidden = {24, 16}, .top_hidden = {32, 8}};
}

dlrm::batch some_batch(std::size_t size, std::uint64_t first = 0) {
  dlrm::click_log log({.scale = tiny});
  log.seek({.next = first});
  dlrm::batch out;
  dlrm::read_batch(log, size, out);
  return out;
}

template <class Scalar>
double summed_loss(const dlrm::model<Scalar>& of, const dlrm::batch& samples) {
  dlrm::workspace<Scalar> work;
  const auto& logits = of.forward(samples, work);
  double sum = 0;
  for (std::size_t s = 0; s < samples.size(); ++s) sum += dlrm::cross_entropy(logits[s], samples.labels[s]);
  return sum;
}

/// The slope of the summed loss at one parameter.
double slope(const dlrm::model<double>& of, const dlrm::batch& samples, double& parameter) {
  constexpr double h = 1e-6;
  const double middle = parameter;
  parameter = middle + h;
  const double above = summed_loss(of, samples);
  parameter = middle - h;
  const double below = summed_loss(of, samples);
  parameter = middle;
  return (above - below) / (2 * h);
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-6 * (1 + std::abs(a) + std::abs(b)); }

/// The gradient of row `row` of table `t`: the sum over the samples that looked it up.
template <class Scalar>
std::vector<Scalar> row_gradient(const dlrm::workspace<Scalar>& work, const dlrm::batch& samples,
                                 std::size_t t, std::uint64_t row) {
  std::vector<Scalar> sum(static_cast<std::size_t>(work.features_gradient.rows()));
  for (std::size_t s = 0; s < samples.size(); ++s) {
    if (samples.rows[t][s] != row) continue;
    const auto column = static_cast<Eigen::Index>(s * dlrm::feature_count + t + 1);
    for (std::size_t k = 0; k < sum.size(); ++k)
      sum[k] += work.features_gradient(static_cast<Eigen::Index>(k), column);
  }
  return sum;
}

/// Records what a checkpointer would be told.
struct recording {
  std::mutex mutex;
  std::multiset<std::uint64_t> samples;
  std::vector<std::uint64_t> boundaries;
  dlrm::reader* log = nullptr;

  dlrm::no_checkpoints::scope begin_batch() { return {}; }
  void touch(const dlrm::batch& of) {
    const std::lock_guard lock(mutex);
    samples.insert(of.indices.begin(), of.indices.end());
  }
  void boundary(std::uint64_t step) {
    boundaries.push_back(step);
    (void)log->position();  // throws if anything is in flight
  }
};

struct trained {
  dlrm::model<float> model{small_model()};
  recording told;
};

void train(trained& run, std::uint64_t steps, std::size_t threads,
           std::uint64_t log_end = ~std::uint64_t{0}) {
  dlrm::click_log source({.scale = tiny, .end = log_end});
  dlrm::reader log(source, 32, 3);
  run.told.log = &log;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere(std::fopen("/dev/null", "w"), &std::fclose);
  dlrm::progress shown(nowhere.get(), 80, steps);
  dlrm::train(run.model, log, run.told, shown, {.last_step = steps, .interval = 8, .threads = threads});
}

}  // namespace

TEST_CASE("dlrm: gradients of both MLPs match finite differences") {
  dlrm::model<double> model(small_model());
  const dlrm::batch samples = some_batch(24);
  for (std::size_t i = 0; i < model.dense.size(); ++i)
    if (model.dense[i] == 0) model.dense[i] = 0.01 * static_cast<double>(i % 7);  // biases off their zero
  dlrm::workspace<double> work;
  model.forward(samples, work);
  model.backward(samples, work);
  REQUIRE(work.dense_gradient.size() == model.dense.size());
  std::size_t wrong = 0, not_zero = 0;
  for (std::size_t i = 0; i < model.dense.size(); i += i < 800 ? 3 : 41) {
    wrong += !close(slope(model, samples, model.dense[i]), work.dense_gradient[i]);
    not_zero += work.dense_gradient[i] != 0;
  }
  CHECK(wrong == 0);
  CHECK(not_zero > 100);
}

TEST_CASE("dlrm: gradients of every bias match finite differences") {
  dlrm::model<double> model(small_model());
  const dlrm::batch samples = some_batch(16);
  dlrm::workspace<double> work;
  model.forward(samples, work);
  model.backward(samples, work);
  std::size_t first = 0, wrong = 0, biases = 0;
  for (const auto* layers : {&model.bottom(), &model.top()})
    for (std::size_t l = 0; l < layers->layers(); ++l) {
      const std::size_t in = layers->widths()[l], out = layers->widths()[l + 1];
      for (std::size_t i = first + in * out; i < first + (in + 1) * out; ++i, ++biases)
        wrong += !close(slope(model, samples, model.dense[i]), work.dense_gradient[i]);
      first += (in + 1) * out;
    }
  CHECK(first == model.dense.size());
  CHECK(biases == 24 + 16 + 16 + 32 + 8 + 1);
  CHECK(wrong == 0);
}

TEST_CASE("dlrm: gradients of embedding rows match finite differences, duplicates included") {
  dlrm::model<double> model(small_model());
  const dlrm::batch samples = some_batch(40);
  dlrm::workspace<double> work;
  model.forward(samples, work);
  model.backward(samples, work);
  std::size_t wrong = 0, duplicated = 0;
  for (std::size_t t = 0; t < dlrm::table_count; t += 5) {
    for (const std::uint64_t row : {samples.rows[t][0], samples.rows[t][1]}) {
      duplicated += std::count(samples.rows[t].begin(), samples.rows[t].end(), row) > 1;
      const std::vector<double> gradient = row_gradient(work, samples, t, row);
      for (std::size_t k = 0; k < gradient.size(); ++k)
        wrong += !close(slope(model, samples, model.tables[t].weights[row * 16 + k]), gradient[k]);
    }
  }
  CHECK(duplicated > 3);
  CHECK(wrong == 0);
}

TEST_CASE("dlrm: a row that several samples look up takes one Adagrad step, by the sum of their gradients") {
  dlrm::model<float> model(small_model());
  const dlrm::batch samples = some_batch(40);
  dlrm::workspace<float> work;
  for (int step = 0; step < 2; ++step) {  // the second with accumulators that are not zero
    model.forward(samples, work);
    model.backward(samples, work);
    const dlrm::model<float> before = model;
    model.update(samples, work);
    for (std::size_t t = 0; t < dlrm::table_count; ++t) {
      const std::set<std::uint64_t> touched(samples.rows[t].begin(), samples.rows[t].end());
      for (std::uint64_t row = 0; row < model.tables[t].rows; ++row) {
        const auto *const old_row = &before.tables[t].weights[row * 16], *const new_row =
                                                                             &model.tables[t]
                                                                                  .weights[row * 16];
        if (!touched.contains(row)) {
          REQUIRE(std::equal(old_row, old_row + 16, new_row));
          REQUIRE(before.tables[t].adagrad[row] == model.tables[t].adagrad[row]);
          continue;
        }
        const std::vector<float> gradient = row_gradient(work, samples, t, row);
        double square = 0;
        for (const float g : gradient) square += static_cast<double>(g) * static_cast<double>(g) / 16;
        const double gathered = static_cast<double>(before.tables[t].adagrad[row]) + square;
        REQUIRE(std::abs(static_cast<double>(model.tables[t].adagrad[row]) - gathered) <= 1e-5 * gathered);
        for (std::size_t k = 0; k < 16; ++k) {
          const double moved =
              static_cast<double>(old_row[k]) - 0.02 * static_cast<double>(gradient[k]) / std::sqrt(gathered);
          REQUIRE(std::abs(static_cast<double>(new_row[k]) - moved) <= 1e-5);
        }
      }
    }
  }
}

TEST_CASE("dlrm: training learns") {
  trained run;
  const dlrm::batch held_back = some_batch(2000, 1'000'000);
  const double before = summed_loss(run.model, held_back);
  train(run, 200, 1);
  CHECK(summed_loss(run.model, held_back) < 0.97 * before);
}

TEST_CASE("dlrm: one thread gives the same bits, run after run") {
  trained first, second;
  const std::vector<char> shifts_the_heap(12345);
  train(first, 20, 1);
  train(second, 20, 1);
  CHECK(all_parameters(first.model) == all_parameters(second.model));
  CHECK(first.told.boundaries == std::vector<std::uint64_t>{8, 16, 20});
  CHECK(first.told.samples.size() == 20 * 32);
}

TEST_CASE("dlrm: Hogwild threads train every sample once, and nothing is in flight at a boundary") {
  trained alone, together;
  train(alone, 60, 1);
  train(together, 60, 4);
  CHECK(together.told.samples == alone.told.samples);
  CHECK(together.told.boundaries == alone.told.boundaries);
  CHECK(std::isfinite(summed_loss(together.model, some_batch(100))));
}

TEST_CASE("dlrm: a log that ends early ends the training, at a boundary") {
  trained run;
  train(run, 20, 2, 320);  // 300 samples to train on: nine batches and a short one
  CHECK(run.told.samples.size() == 300);
  CHECK(run.told.boundaries == std::vector<std::uint64_t>{8, 10});
}

TEST_CASE("dlrm: a resumed schedule reaches the same boundaries") {
  const dlrm::schedule plan{.first_step = 0, .last_step = 20, .interval = 8};
  CHECK(plan.until_boundary(0) == 8);
  CHECK(plan.until_boundary(5) == 3);
  CHECK(plan.until_boundary(8) == 8);
  CHECK(plan.until_boundary(16) == 4);
}

TEST_CASE("dlrm: AUC counts the pairs that are in order") {
  const std::vector<float> scores{0.1f, 0.4f, 0.35f, 0.8f}, labels{0, 0, 1, 1};
  CHECK(dlrm::auc(scores, labels) == 0.75);
  CHECK(dlrm::auc(std::vector<float>{1, 1, 1, 1}, labels) == 0.5);  // ties
  CHECK(dlrm::auc(std::vector<float>{1, 2, 3, 4}, labels) == 1);
  CHECK(std::isnan(dlrm::auc(scores, std::vector<float>{1, 1, 1, 1})));
  CHECK(std::abs(dlrm::cross_entropy(0, 1) - std::log(2)) < 1e-12);
  CHECK(dlrm::cross_entropy(800, 0) == 800);
}

TEST_CASE("dlrm: progress is plain lines where there is no terminal") {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file);
  dlrm::progress shown(file, 0, 1500);
  shown.trained(std::vector<float>{-1, 1}, std::vector<float>{0, 1});
  shown.show(1, false);  // not yet
  shown.saved(1000, 12'345'678, 0.5, .0432);
  shown.show(1000, true);
  std::rewind(file);
  char line[400] = {};
  REQUIRE(std::fgets(line, sizeof line, file));
  const std::string text = line;
  CHECK(text.starts_with("step 1,000/1,500  loss 0.3133  AUC 1.0000  "));
  CHECK(text.ends_with("samples/s  saved at 1,000: 12.3 MB, stall 0.50 ms, error 4.32 %\n"));
  CHECK(std::fgets(line, sizeof line, file) == nullptr);
  std::fclose(file);
}
