// What every strategy has to do, whatever it is. Instantiate check_strategy_contract<Strategy>() for a model.
#pragma once

#include <checkrow/concepts.hpp>
#include <map>
#include <random>
#include <set>

#include "catch_shim.hpp"
#include "tracker_contract.hpp"

namespace strategy_contract {

using checkrow::boundary;
using checkrow::cursor;
using checkrow::history;
using checkrow::row_selection;
using checkrow::save_plan;
using checkrow::table_counts;

inline bool same(const save_plan& a, const save_plan& b) {
  return a.rows == b.rows && a.since == b.since && a.keep == b.keep && a.moves == b.moves &&
         a.codecs == b.codecs;
}

/// A table whose rows hold the number of their last update, saved by a strategy; no files, no threads. What
/// the checkpointer does with a plan, in its simplest form.
template <class Strategy>
class simulation {
 public:
  using version = std::uint64_t;

  explicit simulation(std::uint64_t rows, Strategy policy = {})
      : policy_(policy), versions_(rows, 0), tracker_{.rows = rows, .kept = Strategy::cursors} {}

  void touch(std::uint64_t row) {
    versions_[row] = ++last_version_;
    tracker_.touched.insert(row);
  }

  /// One save, whose plan is checked; where it fails, nothing of it counts. Returns the plan.
  save_plan save(bool fails = false) {
    const table_counts counts{versions_.size(), tracker_.touched.size()};
    const boundary now{.tables = {&counts, 1}, .step = ++step_};
    const save_plan plan = policy_.plan(past_, now);
    check_plan(plan, now);
    const auto ids = tracker_.walk(plan.rows, plan.since);
    if (fails) return plan;

    std::map<std::uint64_t, version> segment;
    for (const std::uint64_t id : ids) segment[id] = versions_[id];
    tracker_.commit(plan.moves);
    history next;
    std::vector<std::map<std::uint64_t, version>> contents;
    for (const std::uint32_t kept : plan.keep) {
      next.segments.push_back(past_.segments[kept]);
      contents.push_back(contents_[kept]);
    }
    const bool full = plan.rows == row_selection::all;
    next.segments.push_back({step_, segment.size(), segment.size() * 64, full});
    contents.push_back(std::move(segment));
    if (!full) {
      next.deltas = past_.deltas + 1;
      next.last_share = double(ids.size()) / double(versions_.size());
      next.share_sum = past_.share_sum + next.last_share;
    }
    past_ = std::move(next);
    contents_ = std::move(contents);
    saved_versions_ = versions_;
    return plan;
  }

  /// Is what the newest checkpoint lists, applied in order, the model as it was when it was saved?
  [[nodiscard]] bool restores() const {
    std::vector<version> restored(versions_.size(), 0);
    for (const auto& segment : contents_)
      for (const auto& [id, value] : segment) restored[id] = value;
    return restored == saved_versions_;
  }

  [[nodiscard]] const history& past() const { return past_; }
  [[nodiscard]] std::uint64_t rows() const { return versions_.size(); }

 private:
  void check_plan(const save_plan& plan, const boundary& now) const {
    CAPTURE(step_, plan.keep, past_.segments.size());
    const Strategy another{policy_};
    REQUIRE(same(plan, another.plan(past_, now)));
    REQUIRE(same(plan, policy_.plan(history(past_), now)));
    for (std::size_t i = 0; i < plan.keep.size(); ++i) {
      REQUIRE(plan.keep[i] < past_.segments.size());
      if (i > 0) REQUIRE(plan.keep[i - 1] < plan.keep[i]);
    }
    if (plan.rows == row_selection::dirty) REQUIRE((checkrow::cursors(plan.since) & Strategy::cursors) != 0);
    REQUIRE((plan.codecs.empty() || plan.codecs.size() == now.tables.size()));
  }

  Strategy policy_;
  std::vector<version> versions_, saved_versions_;
  version last_version_ = 0;
  tracker_contract::model tracker_;
  history past_;
  std::vector<std::map<std::uint64_t, version>> contents_;
  std::uint64_t step_ = 0;
};

/// Saves of a random workload, some of them failing, some with nothing dirty: each restores.
template <class Strategy>
void check_random_workloads() {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    simulation<Strategy> run(150);
    for (int save = 0; save < 60; ++save) {
      const std::uint64_t hot = 1 + random() % 150;
      for (unsigned n = random() % 3 ? random() % 100 : 0; n > 0; --n) run.touch(random() % hot);
      run.save(random() % 5 == 0);
      if (!run.past().empty()) REQUIRE(run.restores());
    }
  }
}

/// Pure: what was asked before does not matter, in whichever order it is asked again.
template <class Strategy>
void check_purity() {
  const Strategy policy{};
  std::mt19937 random(7);
  std::vector<history> asked;
  std::vector<save_plan> answers;
  const table_counts counts[] = {{1000, 3}, {0, 0}, {50, 50}};
  const boundary now{.tables = counts, .step = 12};
  for (int i = 0; i < 50; ++i) {
    history past;
    for (unsigned n = random() % 6; n > 0; --n)
      past.segments.push_back({n, random() % 1000, random() % 100000, past.segments.empty()});
    past.deltas = past.segments.empty() ? 0 : random() % 6;
    past.last_share = double(random() % 100) / 100;
    past.share_sum = double(past.deltas) * past.last_share;
    answers.push_back(policy.plan(past, now));
    asked.push_back(std::move(past));
  }
  for (std::size_t i = asked.size(); i-- > 0;) CHECK(same(policy.plan(asked[i], now), answers[i]));
}

/// `base_first` is false of a strategy that can do without a base; see concepts.hpp.
template <class Strategy>
void check_strategy_contract(bool base_first = true) {
  SECTION("only cursors that exist are declared") {
    CHECK((Strategy::cursors >> checkrow::cursor_count) == 0);
    CHECK_FALSE(std::string_view(Strategy::name).empty());
  }
  SECTION("without a past, every row is saved") {
    const table_counts counts[] = {{1000, 3}, {0, 0}};
    const save_plan plan = Strategy{}.plan({}, {.tables = counts, .step = 1});
    CHECK(plan.keep.empty());
    if (base_first) CHECK(plan.rows == row_selection::all);
    if (base_first) CHECK((plan.moves & Strategy::cursors) == Strategy::cursors);
    const save_plan none = Strategy{}.plan({}, {});
    CHECK(none.keep.empty());
  }
  SECTION("a pure function") { check_purity<Strategy>(); }
  SECTION("whatever is touched, every checkpoint is whole") { check_random_workloads<Strategy>(); }
}

}  // namespace strategy_contract
