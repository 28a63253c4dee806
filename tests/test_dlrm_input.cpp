// The DLRM example's logs and its reader.
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../examples/dlrm/click_log.hpp"
#include "../examples/dlrm/criteo_file.hpp"
#include "../examples/dlrm/reader.hpp"
#include "catch_shim.hpp"
#include "temporary_folder.hpp"

namespace {

/// Writes click logs.
struct log_folder : temporary_folder {
  std::string plain(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string gzip(const std::string& name, const std::string& text) const {
    const std::string file = path(name);
    const gzFile out = gzopen(file.c_str(), "wb");
    REQUIRE(gzwrite(out, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()));
    gzclose(out);
    return file;
  }
};

/// A good line; its first integer tells it from the others.
std::string line(int first, const std::string& label = "0") {
  std::string text = label + "\t" + std::to_string(first);
  for (int i = 1; i < 13; ++i) text += i % 3 == 0 ? "\t" : "\t" + std::to_string(i * 10 - 20);
  for (int i = 0; i < 26; ++i) {
    char word[16];
    std::snprintf(
        word, sizeof word, "\t%08x",
        static_cast<unsigned>(dlrm::mix(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(i))));
    text += i % 5 == 4 ? "\t" : word;
  }
  return text;
}

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line(i) + "\n";
  return text;
}

bool parses(const std::string& text, dlrm::sample& to) {
  return dlrm::parse_criteo_line(text, dlrm::default_table_sizes, to);
}
bool parses(const std::string& text) {
  dlrm::sample unused;
  return parses(text, unused);
}

bool same(const dlrm::sample& a, const dlrm::sample& b) {
  return a.index == b.index && a.numeric == b.numeric && a.rows == b.rows && a.label == b.label &&
         a.probability == b.probability;
}

std::vector<std::uint64_t> all_indices(dlrm::sample_source& of, std::size_t most) {
  std::vector<std::uint64_t> out;
  dlrm::sample one;
  while (out.size() < most && of.read(one)) out.push_back(one.index);
  return out;
}

/// Batches that a trainer takes, sample by sample.
void take(dlrm::reader& from, int batches, std::vector<std::uint64_t>& seen) {
  dlrm::batch next;
  for (int b = 0; b < batches && from.next(next); ++b)
    seen.insert(seen.end(), next.indices.begin(), next.indices.end());
}

/// A run that is killed in the middle of an interval, twice, and resumes: what it trains on in the end.
template <class Open>
std::vector<std::uint64_t> run_with_crashes(Open&& open) {
  std::vector<std::uint64_t> trained;
  std::vector<std::byte> state;
  for (int life = 0; life < 3; ++life) {
    const auto source = open();
    dlrm::reader log(*source, 7, 3);
    if (!state.empty()) log.load_state(state);
    for (int interval = 0; interval < 2; ++interval) {
      log.allow(5);
      take(log, 5, trained);
      state = log.save_state();
    }
    std::vector<std::uint64_t> lost;  // trained after the checkpoint: the next life sees them again
    log.allow(5);
    take(log, 2, lost);
  }
  return trained;
}

}  // namespace

TEST_CASE("dlrm: the built-in log is the same on every machine") {
  const dlrm::click_log log({.seed = 1});
  std::uint64_t hash = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const dlrm::sample one = log.at(i * 7919);
    for (const std::uint64_t row : one.rows) hash = dlrm::mix(hash ^ row);
    for (const float value : one.numeric)
      hash = dlrm::mix(hash ^ static_cast<std::uint64_t>(std::int64_t(value * 32768)));
    hash = dlrm::mix(hash ^ static_cast<std::uint64_t>(one.label) ^
                     static_cast<std::uint64_t>(one.probability * 16777216));
  }
  CHECK(hash == 0xa3fc7daf3294171b);
}

TEST_CASE("dlrm: the built-in log reads the same from any position") {
  dlrm::click_log straight({.seed = 3}), jumping({.seed = 3});
  dlrm::sample a, b;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(straight.read(a));
    CHECK(!dlrm::is_held_out(a.index));
    if (i % 10 == 0) jumping.seek({.next = 123'456'789});
    if (i % 10 == 0) jumping.seek({.next = a.index});
    REQUIRE(jumping.read(b));
    REQUIRE(same(a, b));
    REQUIRE(same(a, straight.at(a.index)));
  }
  CHECK(!same(straight.at(5), dlrm::click_log({.seed = 4}).at(5)));
}

TEST_CASE("dlrm: training and held-out samples share the log out") {
  dlrm::click_log train({.end = 64}), held_out({.which = dlrm::part::held_out, .end = 64});
  CHECK(all_indices(held_out, 100) == std::vector<std::uint64_t>{15, 31, 47, 63});
  CHECK(all_indices(train, 100).size() == 60);
}

TEST_CASE("dlrm: rows are hot, warm or cold, and labels follow the probabilities") {
  dlrm::click_log log({.scale = 8});
  std::vector<std::set<std::uint64_t>> now(dlrm::table_count), ever(dlrm::table_count);
  const double rows =
      static_cast<double>(std::accumulate(log.sizes().begin(), log.sizes().end(), std::uint64_t{0}));
  const auto share = [&](const auto& sets) {
    std::size_t sum = 0;
    for (const auto& set : sets) sum += set.size();
    return static_cast<double>(sum) / rows;
  };
  double clicks = 0, expected = 0;
  for (int interval = 0; interval < 7; ++interval) {
    for (auto& set : now) set.clear();
    dlrm::sample one;
    for (int i = 0; i < 8000; ++i) {
      log.read(one);
      clicks += static_cast<double>(one.label);
      expected += static_cast<double>(one.probability);
      for (std::size_t t = 0; t < dlrm::table_count; ++t) {
        REQUIRE(one.rows[t] < log.sizes()[t]);
        now[t].insert(one.rows[t]);
        ever[t].insert(one.rows[t]);
      }
    }
    CHECK(share(now) > 0.22);
    CHECK(share(now) < 0.28);
  }
  CHECK(share(ever) > 0.42);
  CHECK(share(ever) < 0.52);
  CHECK(std::abs(clicks - expected) < 400);
}

TEST_CASE("dlrm: a Criteo line, its empty fields and what it is hashed to") {
  dlrm::sample one;
  REQUIRE(parses(line(6, "1"), one));
  CHECK(one.label == 1);
  CHECK(one.probability == 1);
  CHECK(std::abs(one.numeric[0] - std::log1p(6.0f)) < 1e-6f);
  CHECK(one.numeric[1] == 0);  // -10
  CHECK(one.numeric[3] == 0);  // empty
  CHECK(std::abs(one.numeric[4] - std::log1p(20.0f)) < 1e-6f);
  for (std::size_t t = 0; t < dlrm::table_count; ++t) CHECK(one.rows[t] < dlrm::default_table_sizes[t]);
  const dlrm::sample first = one;
  REQUIRE(parses(line(6, "0") + "\r", one));
  CHECK(one.rows == first.rows);
  REQUIRE(parses(line(7), one));
  CHECK(one.rows != first.rows);
  CHECK(one.rows[4] == first.rows[4]);  // both empty
  CHECK(parses("0" + std::string(39, '\t')));
}

TEST_CASE("dlrm: lines that are no samples") {
  const std::string good = line(6);
  CHECK(!parses(""));
  CHECK(!parses("\t"));
  CHECK(!parses(good.substr(0, good.rfind('\t'))));  // 39 fields
  CHECK(!parses(good + "\t"));                       // 41
  CHECK(!parses("2" + good.substr(1)));
  CHECK(!parses("" + good.substr(1)));
  CHECK(!parses("0\tx" + good.substr(3)));
  CHECK(!parses("0\t99999999999999999999" + good.substr(3)));
  CHECK(!parses(good.substr(0, good.size() - 9) + "\tnothexxx"));
  CHECK(!parses(std::string(1000, '\0')));
  for (std::size_t i = 0; i < good.size(); ++i) {  // no damage crashes
    std::string damaged = good;
    damaged[i] = static_cast<char>(0xff);
    parses(damaged);
    parses(good.substr(0, i));
  }
}

TEST_CASE("dlrm: bad lines of a file are counted and reported by number, too many stop the run") {
  const log_folder folder;
  std::vector<std::string> reports;
  const auto report = [&](const std::string& text) { reports.push_back(text); };
  std::string text = lines(20) + "junk\n" + std::string(500'000, 'x') + "\n" + lines(20) + "\n" + line(1);
  dlrm::criteo_file few({.path = folder.plain("few", text), .report = report});
  CHECK(all_indices(few, 1000).size() == 39);  // of 41 good lines, two are held out
  CHECK(few.position().malformed == 3);
  CHECK(few.position().next == 44);
  CHECK(few.position().offset == text.size());
  REQUIRE(reports.size() == 3);
  CHECK(reports[0].find("few:21: ") != std::string::npos);
  CHECK(reports[1].find("few:22: ") != std::string::npos);
  CHECK(reports[2].find("few:43: ") != std::string::npos);

  reports.clear();
  text.clear();
  for (int i = 0; i < 2000; ++i) text += i % 50 == 0 ? "junk\n" : line(i) + "\n";
  dlrm::criteo_file many({.path = folder.plain("many", text), .report = report});
  try {
    all_indices(many, 5000);
    FAIL("not stopped");
  } catch (const std::runtime_error& stop) {
    CHECK(std::string(stop.what()).find("21 of the first 1001 lines are no samples, more than 1 in 100") !=
          std::string::npos);
  }
  CHECK(reports.size() == dlrm::criteo_file::reports);
}

TEST_CASE("dlrm: a Criteo file reads the same plain and gzipped, from any position") {
  const log_folder folder;
  const std::string text = lines(3000);
  dlrm::criteo_file plain({.path = folder.plain("log", text)}), packed({.path = folder.gzip("log.gz", text)});
  dlrm::sample a, b;
  std::vector<dlrm::log_position> positions;
  std::vector<dlrm::sample> samples;
  for (;;) {
    positions.push_back(plain.position());
    CHECK(packed.position() == plain.position());
    const bool more = plain.read(a);
    REQUIRE(packed.read(b) == more);
    if (!more) break;
    REQUIRE(same(a, b));
    samples.push_back(a);
  }
  CHECK(samples.size() == 3000 - 3000 / 16);
  for (std::size_t i = samples.size(); i > 0; i -= std::min<std::size_t>(i, 397)) {
    for (dlrm::criteo_file* file : {&plain, &packed}) {
      file->seek(positions[i - 1]);
      REQUIRE(file->read(a));
      CHECK(same(a, samples[i - 1]));
    }
  }
}

TEST_CASE("dlrm: files that can't be read say so") {
  const log_folder folder;
  CHECK_THROWS_AS(dlrm::criteo_file({.path = folder.path("none")}), std::runtime_error);
  const std::string packed = folder.gzip("cut.gz", lines(3000));
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) / 2);
  dlrm::criteo_file cut({.path = packed});
  CHECK_THROWS_AS(all_indices(cut, 5000), std::runtime_error);
  dlrm::criteo_file empty({.path = folder.plain("empty", "")});
  CHECK(all_indices(empty, 10).empty());
}

TEST_CASE("dlrm: no sample is skipped or seen twice by a run that crashes and resumes") {
  const auto expected = [](std::size_t count) {
    dlrm::click_log log({});
    return all_indices(log, count);
  };
  CHECK(run_with_crashes([] { return std::make_unique<dlrm::click_log>(dlrm::click_log::options{}); }) ==
        expected(210));

  const log_folder folder;
  const std::string text = lines(400);
  for (const std::string& path : {folder.plain("log", text), folder.gzip("log.gz", text)})
    CHECK(run_with_crashes([&] {
            return std::make_unique<dlrm::criteo_file>(dlrm::criteo_file::options{.path = path});
          }) == expected(210));
}

TEST_CASE("dlrm: the reader stops at the boundary, and saves its state only there") {
  dlrm::click_log source({});
  dlrm::reader log(source, 10, 2);
  std::vector<std::uint64_t> seen;
  log.allow(4);
  take(log, 3, seen);
  CHECK_THROWS_AS(log.save_state(), std::logic_error);  // the fourth is in flight
  take(log, 1, seen);
  CHECK(log.position().next == seen.back() + 1);
  CHECK_THROWS_AS(log.load_state(std::vector<std::byte>(3)), std::invalid_argument);
  std::thread waits([&] {
    dlrm::batch none;
    CHECK(!log.next(none));
  });  // until close()
  log.close();
  waits.join();
}

TEST_CASE("dlrm: at the log's end comes a short batch, then none; a failing log throws in the trainer") {
  dlrm::click_log source({.end = 32});
  dlrm::reader log(source, 20);
  std::vector<std::uint64_t> seen;
  log.allow(5);
  take(log, 5, seen);
  CHECK(seen.size() == 30);
  CHECK(log.position().next == 32);

  const log_folder folder;
  dlrm::criteo_file junk(
      {.path = folder.plain("junk", std::string(3000, '\n')), .report = [](const std::string&) {}});
  dlrm::reader failing(junk, 20);
  failing.allow(5);
  CHECK_THROWS_AS(take(failing, 5, seen), std::runtime_error);
}
