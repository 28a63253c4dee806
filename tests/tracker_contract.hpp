// What every row_tracker has to do, whatever it is. Instantiate check_tracker_contract<Tracker>() for a
// model.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <checkrow/concepts.hpp>
#include <limits>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "catch_shim.hpp"

namespace tracker_contract {

using checkrow::cursor;
using checkrow::cursor_set;
using checkrow::row_selection;
using row_set = std::set<std::uint64_t>;
using ids = std::vector<std::uint64_t>;

inline constexpr cursor_set both = checkrow::cursors(cursor::last_save, cursor::base);
inline constexpr cursor_set every = ~cursor_set{};  // also what a plan moves unless it says otherwise

/// The slow, obvious oracle.
struct model {
  std::uint64_t rows = 0;
  cursor_set kept = both;
  row_set touched{};
  std::array<row_set, checkrow::cursor_count> changed{};

  void fold() {
    for (std::size_t c = 0; c < changed.size(); ++c)
      if (kept >> c & 1) changed[c].insert(touched.begin(), touched.end());
    touched.clear();
  }
  [[nodiscard]] row_set walk(row_selection selection, cursor since) {
    fold();
    if (selection == row_selection::dirty) return changed[std::size_t(since)];
    row_set all;
    for (std::uint64_t id = 0; id < rows; ++id) all.insert(all.end(), id);
    return all;
  }
  void commit(cursor_set moved) {
    for (std::size_t c = 0; c < changed.size(); ++c)
      if (moved >> c & 1) changed[c].clear();
  }
};

template <class Tracker>
struct tracked : Tracker::table_rows {
  explicit tracked(std::uint64_t rows, cursor_set kept = both)
      : Tracker::table_rows(Tracker{}, rows, kept), rows_(rows) {}

  std::size_t touch_ids(const ids& some) { return this->touch(std::span<const std::uint64_t>(some)); }
  /// What the blocks from `first` on yield; no row may come twice, none from beyond the table.
  row_set rest_of_walk(std::uint64_t first_block = 0) {
    row_set out;
    for (std::uint64_t block = first_block; block < this->blocks(); ++block) {
      const std::uint64_t bits = this->take(block);
      for (std::uint64_t i = 0; i < 64; ++i)
        if (bits >> i & 1) out.insert(out.end(), block * 64 + i);
    }
    if (!out.empty()) REQUIRE(*out.rbegin() < rows_);
    return out;
  }
  row_set walk(cursor since, row_selection selection = row_selection::dirty) {
    this->begin(selection, since);
    return rest_of_walk();
  }

 private:
  std::uint64_t rows_;
};

template <class Tracker>
void check_one_save_after_another() {
  tracked<Tracker> rows(200);
  CHECK(rows.blocks() == 4);
  CHECK(rows.dirty() == 0);
  CHECK(rows.walk(cursor::last_save).empty());

  CHECK(rows.touch_ids({5, 63, 64, 199, 5, 5}) == 6);
  CHECK(rows.dirty() == 4);
  CHECK(rows.walk(cursor::last_save) == row_set{5, 63, 64, 199});
  CHECK(rows.dirty() == 0);

  rows.touch_ids({64, 100});  // while the save is being written: one known row, one new
  CHECK(rows.dirty() == 2);
  rows.commit(both);
  CHECK(rows.dirty() == 2);
  CHECK(rows.walk(cursor::last_save) == row_set{64, 100});
  rows.commit(both);
  CHECK(rows.walk(cursor::last_save).empty());
}

template <class Tracker>
void check_failed_saves() {
  tracked<Tracker> rows(130);
  rows.touch_ids({1, 129});
  CHECK(rows.walk(cursor::last_save) == row_set{1, 129});  // that save fails: no commit
  rows.touch_ids({2});
  CHECK(rows.walk(cursor::last_save) == row_set{1, 2, 129});  // and so does this one
  CHECK(rows.walk(cursor::last_save) == row_set{1, 2, 129});
  rows.begin(row_selection::dirty, cursor::last_save);  // one that is broken off in the middle
  CHECK(rows.take(0) == 6);
  rows.touch_ids({3, 128});
  CHECK(rows.walk(cursor::last_save) == row_set{1, 2, 3, 128, 129});
  CHECK(rows.walk(cursor::base, row_selection::all).size() == 130);  // a full save fails as well
  CHECK(rows.walk(cursor::base) == row_set{1, 2, 3, 128, 129});
  rows.commit(every);
  CHECK(rows.walk(cursor::last_save).empty());
  CHECK(rows.walk(cursor::base).empty());
}

/// faults.md 11: a consumer's commit clears its own view, and no other's.
template <class Tracker>
void check_cursors_are_independent() {
  tracked<Tracker> rows(100);
  rows.touch_ids({1, 2});
  (void)rows.walk(cursor::last_save);
  rows.commit(checkrow::cursors(cursor::last_save));
  CHECK(rows.walk(cursor::last_save).empty());
  CHECK(rows.walk(cursor::base) == row_set{1, 2});

  rows.touch_ids({3});
  (void)rows.walk(cursor::base, row_selection::all);  // the fold reaches both, whatever the plan asks for
  rows.commit(checkrow::cursors(cursor::base));
  CHECK(rows.walk(cursor::base).empty());
  CHECK(rows.walk(cursor::last_save) == row_set{3});
  rows.commit(0);
  CHECK(rows.walk(cursor::last_save) == row_set{3});
}

/// A strategy declares which cursors it needs; the others cost nothing and are never asked for, but a commit
/// and a restore may name them.
template <class Tracker>
void check_cursors_that_are_not_kept() {
  for (const cursor kept : {cursor::last_save, cursor::base}) {
    const cursor other = kept == cursor::base ? cursor::last_save : cursor::base;
    tracked<Tracker> rows(70, checkrow::cursors(kept));
    rows.touch_ids({0, 69});
    CHECK(rows.walk(kept) == row_set{0, 69});
    rows.commit(checkrow::cursors(other));
    rows.mark(other, ids{7});
    CHECK(rows.walk(kept) == row_set{0, 69});
    rows.commit(every);
    CHECK(rows.walk(kept).empty());
  }
  tracked<Tracker> none(70, 0);
  none.touch_ids({3});
  none.mark(cursor::base, ids{4});
  CHECK(none.dirty() == 1);
  CHECK(none.walk(cursor::base, row_selection::all).size() == 70);
  none.commit(every);
  CHECK(none.dirty() == 0);
}

template <class Tracker>
void check_sizes() {
  for (const std::uint64_t count : {1, 63, 64, 65, 127, 128, 129, 1000}) {
    CAPTURE(count);
    tracked<Tracker> rows(count);
    CHECK(rows.blocks() == (count + 63) / 64);
    const row_set all = rows.walk(cursor::base, row_selection::all);
    CHECK(all.size() == count);
    CHECK(rows.touch_ids({count - 1, count}) == 1);
    rows.touch_range(0, count);
    CHECK(rows.dirty() == count);
    CHECK(rows.walk(cursor::last_save) == all);
  }
  tracked<Tracker> none(0);
  CHECK(none.blocks() == 0);
  CHECK(none.touch_ids({}) == 0);
  CHECK(none.touch_ids({0}) == 0);
  CHECK(none.walk(cursor::base, row_selection::all).empty());
  none.mark(cursor::base, {});
  none.commit(every);
  none.clear();
  CHECK(none.dirty() == 0);
}

template <class Tracker, class Id>
void check_ids_of_type() {
  using limits = std::numeric_limits<Id>;
  constexpr Id rows_of_table = 150;
  const auto touch = [](tracked<Tracker>& rows, const std::vector<Id>& some) {
    return rows.touch(std::span<const Id>(some));
  };
  tracked<Tracker> rows(rows_of_table);
  CHECK(touch(rows, {}) == 0);
  CHECK(touch(rows, {0, 149, 70, 0}) == 4);
  std::vector<Id> bad = {rows_of_table, limits::max(), limits::max() - 1};
  if constexpr (limits::is_signed) bad.insert(bad.end(), {Id{-1}, limits::min()});
  if constexpr (sizeof(Id) == 8) bad.push_back(static_cast<Id>(std::uint64_t{1} << 32));  // 0 in 32 bits
  for (const Id wrong : bad) {
    CAPTURE(wrong);
    CHECK(touch(rows, {wrong}) == 0);
    CHECK(touch(rows, {1, 2, wrong, 3, wrong}) == 2);  // the index of the first; the rest is untouched
  }
  CHECK(rows.dirty() == 5);
  CHECK(rows.walk(cursor::last_save) == row_set{0, 1, 2, 70, 149});
}

template <class Tracker>
void check_ranges() {
  tracked<Tracker> rows(300);
  rows.touch_range(60, 10);  // over the edge of a block
  CHECK(rows.dirty() == 10);
  rows.touch_range(64, 200);  // whole blocks between two parts
  CHECK(rows.dirty() == 204);
  rows.touch_range(0, 1);
  rows.touch_range(299, 1);
  CHECK(rows.dirty() == 206);
  row_set expected{0, 299};
  for (std::uint64_t id = 60; id < 264; ++id) expected.insert(id);
  CHECK(rows.walk(cursor::last_save) == expected);
}

template <class Tracker>
void check_restored() {
  tracked<Tracker> rows(100);
  rows.touch_ids({1});
  (void)rows.walk(cursor::base);
  rows.touch_ids({2});
  rows.clear();  // the model is another one now
  CHECK(rows.dirty() == 0);
  CHECK(rows.walk(cursor::base).empty());
  CHECK(rows.walk(cursor::last_save).empty());

  rows.mark(cursor::base, ids{10, 99});  // the deltas that it was restored from
  CHECK(rows.dirty() == 0);
  rows.touch_ids({99, 20});
  CHECK(rows.walk(cursor::last_save) == row_set{20, 99});
  rows.commit(checkrow::cursors(cursor::last_save));
  CHECK(rows.walk(cursor::base) == row_set{10, 20, 99});
  rows.commit(checkrow::cursors(cursor::base));
  CHECK(rows.walk(cursor::base).empty());
}

/// Long random sequences of everything, against the oracle.
template <class Tracker>
void check_random_operations() {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::uint64_t count = 1 + random() % 400;
    tracked<Tracker> rows(count);
    model expected{.rows = count};
    for (int step = 0; step < 300; ++step) {
      const cursor since = random() % 2 ? cursor::base : cursor::last_save;
      switch (random() % 8) {
        case 0: {
          const std::uint64_t first = random() % count, n = 1 + random() % (count - first);
          rows.touch_range(first, n);
          for (std::uint64_t i = 0; i < n; ++i) expected.touched.insert(first + i);
          break;
        }
        case 1:
        case 2: {  // a save, during which the trainer goes on; every third one fails
          const row_selection selection = random() % 4 ? row_selection::dirty : row_selection::all;
          REQUIRE(rows.walk(since, selection) == expected.walk(selection, since));
          const std::uint64_t id = random() % count;
          rows.touch_ids({id});
          expected.touched.insert(id);
          if (random() % 3 == 0) break;
          const cursor_set moved = random() % 4;
          rows.commit(moved);
          expected.commit(moved);
          break;
        }
        case 3: {  // a restore, now and then
          if (random() % 10 != 0) break;
          rows.clear();
          expected = {.rows = count};
          const ids some{random() % count, random() % count};
          rows.mark(since, some);
          expected.changed[std::size_t(since)].insert(some.begin(), some.end());
          break;
        }
        default: {  // ids, sometimes one too large
          ids some;
          for (unsigned n = random() % 20; n > 0; --n) some.push_back(random() % (count + (n == 9 ? 2 : 0)));
          std::size_t good = 0;
          while (good < some.size() && some[good] < count) expected.touched.insert(some[good++]);
          REQUIRE(rows.touch_ids(some) == good);
          break;
        }
      }
      REQUIRE(rows.dirty() == expected.touched.size());
    }
  }
}

/// Each newly set bit is counted once, whoever sets it; a commit beside the touches loses none.
template <class Tracker>
void check_threads() {
  constexpr unsigned thread_count = 4;
  constexpr std::uint64_t count = 5000;
  tracked<Tracker> rows(count);
  for (unsigned round = 0; round < 4; ++round) {
    std::array<row_set, thread_count> touched;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < thread_count; ++t)
      threads.emplace_back([&rows, &mine = touched[t], seed = round * thread_count + t] {
        std::mt19937 random(seed);
        for (int batch = 0; batch < 40; ++batch) {
          ids some;
          for (int i = 0; i < 16; ++i) some.push_back(random() % (1 + random() % count));
          rows.touch_ids(some);
          mine.insert(some.begin(), some.end());
          const std::uint64_t first = random() % (count - 70), n = 1 + random() % 70;
          rows.touch_range(first, n);
          for (std::uint64_t i = 0; i < n; ++i) mine.insert(first + i);
        }
      });
    for (int i = 0; i < 20; ++i) rows.commit(both);  // of the round before
    for (std::thread& one : threads) one.join();
    row_set all;
    for (const row_set& mine : touched) all.insert(mine.begin(), mine.end());
    CHECK(rows.dirty() == all.size());
    CHECK(rows.walk(cursor::last_save) == all);
  }
}

/// Threads that work on the same blocks at the same time: no bit is lost, none is counted twice.
template <class Tracker>
void check_threads_in_step() {
  constexpr unsigned thread_count = 4, rounds = 600;
  constexpr std::uint64_t at_once = 128, count = at_once * rounds;
  for (const bool same_rows : {false, true}) {
    CAPTURE(same_rows);
    tracked<Tracker> rows(count);
    std::atomic<unsigned> arrived{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < thread_count; ++t)
      threads.emplace_back([&, t] {
        for (unsigned round = 0; round < rounds; ++round) {
          ids mine;  // each thread its own rows of the same words, or all of them the same rows
          for (std::uint64_t i = same_rows ? 0 : t; i < at_once; i += same_rows ? 1 : thread_count)
            mine.push_back(round * at_once + i);
          for (++arrived; arrived < (round + 1) * thread_count;) std::this_thread::yield();
          rows.touch_ids(mine);
        }
      });
    for (std::thread& one : threads) one.join();
    CHECK(rows.dirty() == count);
    CHECK(rows.walk(cursor::base).size() == count);
  }
}

template <class Tracker>
void check_tracker_contract() {
  SECTION("one save after another") { check_one_save_after_another<Tracker>(); }
  SECTION("failed saves lose nothing") { check_failed_saves<Tracker>(); }
  SECTION("cursors are independent") { check_cursors_are_independent<Tracker>(); }
  SECTION("cursors that are not kept") { check_cursors_that_are_not_kept<Tracker>(); }
  SECTION("last blocks that are not full, and tables of no rows") { check_sizes<Tracker>(); }
  SECTION("int32 ids") { check_ids_of_type<Tracker, std::int32_t>(); }
  SECTION("int64 ids") { check_ids_of_type<Tracker, std::int64_t>(); }
  SECTION("uint32 ids") { check_ids_of_type<Tracker, std::uint32_t>(); }
  SECTION("uint64 ids") { check_ids_of_type<Tracker, std::uint64_t>(); }
  SECTION("ranges") { check_ranges<Tracker>(); }
  SECTION("restored") { check_restored<Tracker>(); }
  SECTION("random operations") { check_random_operations<Tracker>(); }
  SECTION("four threads") { check_threads<Tracker>(); }
  SECTION("four threads in step") { check_threads_in_step<Tracker>(); }
}

}  // namespace tracker_contract
