// Strategies: the contract, and the Check-N-Run paper's figures, first as arithmetic, then with real saves.
#include <checkrow/checkpointer.hpp>
#include <checkrow/sinks/memory.hpp>
#include <checkrow/strategies/consecutive.hpp>
#include <checkrow/strategies/full.hpp>
#include <checkrow/strategies/intermittent.hpp>
#include <checkrow/strategies/one_shot.hpp>

#include "own_policies.hpp"
#include "strategy_contract.hpp"

using namespace checkrow;
using strategy_contract::simulation;

TEST_CASE("full keeps the strategy contract", "[strategy]") {
  strategy_contract::check_strategy_contract<full>();
}
TEST_CASE("one_shot keeps the strategy contract", "[strategy]") {
  strategy_contract::check_strategy_contract<one_shot>();
}
TEST_CASE("consecutive keeps the strategy contract", "[strategy]") {
  strategy_contract::check_strategy_contract<consecutive>();
}
TEST_CASE("intermittent keeps the strategy contract", "[strategy]") {
  strategy_contract::check_strategy_contract<intermittent>();
}
TEST_CASE("a user's strategy is held to the same contract", "[strategy]") {
  strategy_contract::check_strategy_contract<own::dirty_only>(false);
}

namespace {

/// The paper's sizes of the differentials since the baseline, as shares of all rows.
constexpr double paper_shares[] = {.26, .31, .35, .385, .415, .44, .46};

bool near(double got, double expected, double margin) { return std::fabs(got - expected) <= margin; }

/// A fresh model reads what the sink holds.
template <class Strategy>
bool restores_to(const memory& store, const std::vector<float>& weights, const std::vector<float>& adagrad,
                 std::uint32_t dim) {
  std::vector<float> other_weights(weights.size(), -1), other_adagrad(adagrad.size(), -1);
  checkpointer reader{exact{}, Strategy{}, store};
  reader.table("users", other_weights, dim, {.columns = {{"adagrad", other_adagrad}}});
  return reader.restore().has_value() &&
         std::memcmp(other_weights.data(), weights.data(), weights.size() * sizeof(float)) == 0 &&
         std::memcmp(other_adagrad.data(), adagrad.data(), adagrad.size() * sizeof(float)) == 0;
}

/// The workload with the paper's shape (papers.md): 19.6 % of the rows are touched in every interval, 35.6 %
/// at rate 0.192 an interval, 44.8 % never.
class paper_workload {
 public:
  explicit paper_workload(std::uint64_t row_count) : rows(row_count) {}
  const std::uint64_t rows;

  /// The rows of the next interval.
  [[nodiscard]] std::vector<std::uint64_t> next() {
    std::vector<std::uint64_t> out;
    std::bernoulli_distribution now_and_then(1 - std::exp(-0.192));
    for (std::uint64_t row = 0; row < rows; ++row) {
      const std::uint64_t place = row * 7919 % 1000;  // the classes lie interleaved
      if (place < 196 || (place < 552 && now_and_then(random_))) out.push_back(row);
    }
    return out;
  }

 private:
  std::mt19937 random_{2026};
};

struct figures {
  double written = 0;        ///< rows, as a share of all, mean of the saves
  double largest_later = 0;  ///< of the saves after the first
  std::uint64_t full_saves = 0;
};

/// Trains and saves 12 intervals; each checkpoint has to restore bit by bit.
template <class Strategy>
figures twelve_saves() {
  constexpr std::uint64_t rows = 40'000;
  constexpr std::uint32_t dim = 2;
  std::vector<float> weights(rows * dim, 0.25f), adagrad(rows);
  memory store;
  paper_workload workload(rows);
  checkpointer ckpt{exact{}, Strategy{}, store};
  auto users = ckpt.table("users", weights, dim, {.columns = {{"adagrad", adagrad}}});
  figures out;
  for (std::uint64_t step = 1; step <= 12; ++step) {
    const auto touched = workload.next();
    users.touch(touched);
    CHECK(users.dirty_rows() == touched.size());
    for (const std::uint64_t row : touched) {
      weights[row * dim] += float(step);
      weights[row * dim + 1] -= 1.0f / float(row + step);
      adagrad[row] += 1;
    }
    const ticket saved = ckpt.save(step);
    saved.wait();
    CHECK(saved.figures().total_rows == rows);
    const double share = double(saved.figures().rows) / double(rows);
    out.written += share / 12;
    if (step > 1) out.largest_later = std::max(out.largest_later, share);
    out.full_saves += saved.figures().full;
    CAPTURE(step);
    REQUIRE(restores_to<Strategy>(store, weights, adagrad, dim));
  }
  return out;
}

/// The most rows that a committed checkpoint lists, as a share of all, over 12 simulated saves.
template <class Strategy>
double most_kept() {
  paper_workload workload(4000);
  simulation<Strategy> run(workload.rows);
  double most = 0;
  for (int save = 0; save < 12; ++save) {
    for (const std::uint64_t row : workload.next()) run.touch(row);
    run.save();
    REQUIRE(run.restores());
    double kept = 0;
    for (const segment_info& segment : run.past().segments)
      kept += double(segment.rows) / double(workload.rows);
    most = std::max(most, kept);
  }
  return most;
}

}  // namespace

TEST_CASE("intermittent fires first at i = 7 on the paper's sequence", "[strategy]") {
  const intermittent policy;
  history past{.segments = {{.sequence = 1, .full = true}}};
  CHECK(policy.plan(past, {}).rows == row_selection::dirty);  // the first save after the baseline
  for (std::uint64_t i = 1; i <= 7; ++i) {
    past.segments = {{.sequence = 1, .full = true}, {.sequence = i + 1}};
    past.deltas = i;
    past.last_share = paper_shares[i - 1];
    past.share_sum += past.last_share;
    CAPTURE(i);
    const save_plan plan = policy.plan(past, {});
    if (i < 7) {
      CHECK(plan.rows == row_selection::dirty);
      CHECK(plan.since == cursor::base);
      CHECK(plan.keep == std::vector<std::uint32_t>{0});  // the base; the delta before is superseded
      CHECK((plan.moves & cursors(cursor::base)) == 0);
    } else {
      CHECK(plan.rows == row_selection::all);
      CHECK(plan.keep.empty());
      CHECK((plan.moves & cursors(cursor::base)) != 0);
      const double goes_on = 8 * past.last_share, starts_anew = 1 + past.share_sum;
      CHECK(near(starts_anew, 3.62, 1e-9));
      CHECK(near(goes_on, 3.68, 1e-9));  // a margin of 1.6 %
    }
  }
}

TEST_CASE("with real saves, the eighth after the baseline is the next baseline", "[strategy]") {
  std::vector<float> weights(1000 * 2, 1), adagrad(1000);
  memory store;
  checkpointer ckpt{exact{}, intermittent{}, store};
  auto users = ckpt.table("users", weights, 2, {.columns = {{"adagrad", adagrad}}});
  std::uint64_t step = 0;
  for (int round = 0; round < 2; ++round) {
    ticket base = ckpt.save(++step);
    base.wait();
    CHECK(base.figures().full);
    for (const double share : paper_shares) {
      const auto until = std::uint64_t(std::lround(share * 1000));
      users.touch_range(0, until);
      for (std::uint64_t row = 0; row < until; ++row) weights[row * 2] += float(step);
      const ticket delta = ckpt.save(++step);
      delta.wait();
      CAPTURE(step, share);
      CHECK_FALSE(delta.figures().full);
      CHECK(delta.figures().rows == until);
    }
    REQUIRE(restores_to<intermittent>(store, weights, adagrad, 2));
  }
}

TEST_CASE("rows written on a workload with the paper's shape", "[strategy]") {
  SECTION("full") {
    const figures got = twelve_saves<full>();
    CHECK(got.written == 1);
    CHECK(got.full_saves == 12);
  }
  SECTION("one-shot") {
    const figures got = twelve_saves<one_shot>();
    CHECK(near(got.written, .467, .01));
    CHECK(near(got.largest_later, .51, .01));
    CHECK(got.full_saves == 1);
  }
  SECTION("consecutive") {
    const figures got = twelve_saves<consecutive>();
    CHECK(near(got.written, .320, .01));
    CHECK(near(got.largest_later, .26, .01));
    CHECK(got.full_saves == 1);
  }
  SECTION("intermittent") {
    const figures got = twelve_saves<intermittent>();
    CHECK(near(got.written, .463, .02));
    CHECK(got.full_saves == 2);
  }
}

TEST_CASE("rows kept on a workload with the paper's shape", "[strategy]") {
  CHECK(most_kept<full>() == 1);
  CHECK(near(most_kept<one_shot>(), 1.51, .02));
  CHECK(near(most_kept<consecutive>(), 3.84, .05));
  CHECK(near(most_kept<intermittent>(), 1.46, .03));
}
