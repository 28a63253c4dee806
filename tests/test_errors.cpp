// The error that a save states, against the one that a restore shows.
#include <checkrow/checkrow.hpp>
#include <checkrow/detail/blobs.hpp>
#include <checkrow/detail/row_errors.hpp>
#include <cmath>
#include <limits>

#include "catch_shim.hpp"
#include "row_kinds.hpp"

using namespace checkrow;

namespace {

constexpr std::size_t rows = 1000, dim = 48;

/// The plain definition, in long double.
double error_of(std::span<const float> had, std::span<const float> read) {
  long double elements = 0, changes = 0;
  for (std::size_t d = 0; d < had.size(); ++d) {
    const long double change = static_cast<long double>(read[d]) - static_cast<long double>(had[d]);
    elements += static_cast<long double>(had[d]) * static_cast<long double>(had[d]);
    changes += change * change;
  }
  return changes == 0 || !(elements > 0) || !std::isfinite(elements)
             ? 0
             : static_cast<double>(std::sqrt(changes / elements));
}

struct tables {
  std::vector<float> weights = std::vector<float>(rows * dim);
  std::vector<float> exact_weights = std::vector<float>(rows * 3, 0.1f);

  tables() {
    row_kinds::random_source random{5};
    for (std::size_t i = 0; i < rows; ++i)
      row_kinds::fill_row(random, static_cast<row_kinds::kind>(i % row_kinds::kind_count), row(i));
  }
  std::span<float> row(std::size_t i) { return std::span(weights).subspan(i * dim, dim); }
};

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); }

/// Saves all rows, then every third, and compares both saves' figures and manifests with a restore.
void check_errors(std::uint64_t every) {
  memory store;
  tables model;
  checkpointer ckpt{codec_set{exact{}, uniform<4>{}}, one_shot{}, store, options{.error_sample = every}};
  auto lossy = ckpt.table("lossy", model.weights, dim, {.codec = uniform<4>{}});
  ckpt.table("exact", model.exact_weights, 3);
  for (std::uint64_t step = 1; step <= 2; ++step) {
    std::vector<std::uint64_t> ids;
    for (std::uint64_t id = 0; id < rows; id += step == 1 ? 1 : 3) ids.push_back(id);
    lossy.touch(ids);
    const ticket saved = ckpt.save(step);
    saved.wait();

    tables read;
    checkpointer reader{codec_set{exact{}, uniform<4>{}}, store};
    reader.table("lossy", read.weights, dim, {.codec = uniform<4>{}});
    reader.table("exact", read.exact_weights, 3);
    reader.restore();
    double sum = 0, largest = 0;
    std::uint64_t worst = 0, count = 0;
    for (std::size_t i = 0; i < ids.size(); i += every, ++count) {
      const double error = error_of(model.row(ids[i]), read.row(ids[i]));
      sum += error;
      if (error > largest) largest = error, worst = ids[i];
    }
    const save_figures figures = saved.figures();
    REQUIRE(figures.errors.size() == 1);
    const column_error& error = figures.errors[0];
    CHECK(error.table == "lossy");
    CHECK(error.column == "weights");
    CHECK(error.rows == count);
    CHECK(close(error.mean, sum / static_cast<double>(count)));
    CHECK(close(error.largest, largest));
    CHECK(error.worst_row == worst);
    CHECK(error.largest > 0.01);
  }
  ckpt.finish();
}

/// The errors of each segment that the newest manifest lists.
std::vector<std::vector<format::column_error>> listed_errors(memory& store) {
  std::string newest;
  for (const blob& one : *store.list())
    if (one.name.ends_with(".manifest")) newest = std::max(newest, one.name);
  auto opened = store.open(newest);
  std::string text(opened->bytes(), ' ');
  REQUIRE(opened->read(0, std::as_writable_bytes(std::span(text))));
  const auto manifest = format::read_manifest(text, newest);
  REQUIRE(manifest.ok());
  std::vector<std::vector<format::column_error>> out;
  for (const auto& segment : manifest->segments) out.push_back(segment.errors);
  return out;
}

}  // namespace

TEST_CASE("a save states the error of its rows, of all or of a sample") {
  check_errors(1);
  check_errors(7);
  check_errors(128);
  check_errors(5000);
}

TEST_CASE("errors stay with the segment whose rows they are of") {
  memory store;
  tables model;
  checkpointer ckpt{uniform<2>{}, consecutive{}, store, options{.error_sample = 2}};
  auto table = ckpt.table("t", model.weights, dim);
  ckpt.save(1).wait();
  table.touch(std::vector{4, 5, 6, 7});
  ckpt.save(2).wait();
  const auto listed = listed_errors(store);
  REQUIRE(listed.size() >= 2);
  REQUIRE(listed.front().size() == 1);
  CHECK(listed.front()[0].rows == rows / 2);
  CHECK(listed.front()[0].every == 2);
  REQUIRE(listed.back().size() == 1);
  CHECK(listed.back()[0].rows == 2);
  CHECK(listed.back()[0].table == 0);
  CHECK(listed.back()[0].column == 0);
  CHECK((listed.back()[0].worst_row == 4 || listed.back()[0].worst_row == 6));
  ckpt.finish();
}

TEST_CASE("no error is measured where none is wanted, or nothing is lost") {
  memory store;
  tables model;
  checkpointer ckpt{codec_set{exact{}, uniform<4>{}}, store, options{.error_sample = 0}};
  ckpt.table("lossy", model.weights, dim, {.codec = uniform<4>{}});
  ckpt.table("exact", model.exact_weights, 3);
  const ticket saved = ckpt.save(1);
  saved.wait();
  CHECK(saved.figures().errors.empty());
}

TEST_CASE("rows that are no numbers, or nothing, have an error that is one") {
  const column_shape shape{element_type::float32, 4, 2};
  const float nan = std::numeric_limits<float>::quiet_NaN(), huge = std::numeric_limits<float>::max();
  const auto error = [&](std::array<float, 2> had, std::array<float, 2> read) {
    return detail::relative_error(shape, reinterpret_cast<const std::byte*>(had.data()),
                                  reinterpret_cast<const std::byte*>(read.data()));
  };
  CHECK(error({nan, 1}, {nan, 1}) == 0);
  CHECK(error({nan, 1}, {0, 1}) == 1);
  CHECK(error({0, 0}, {0, 1}) == 1);
  CHECK(error({0, -0.0f}, {0, 0}) == 0);
  CHECK(error({3, 4}, {3, 4.5f}) == 0.1);
  CHECK(error({huge, huge}, {huge, -huge}) > 1.4);
  const std::uint16_t halves[] = {0x3c00, 0x0001}, others[] = {0x3e00, 0x0001};  // 1 to 1.5, 2^-24
  CHECK(
      close(detail::relative_error({element_type::float16, 2, 2}, reinterpret_cast<const std::byte*>(halves),
                                   reinterpret_cast<const std::byte*>(others)),
            0.5 / std::sqrt(1 + 0x1p-48)));
  const std::uint16_t brains[] = {0x3f80}, brains2[] = {0x3fc0};
  CHECK(detail::relative_error({element_type::bfloat16, 2, 1}, reinterpret_cast<const std::byte*>(brains),
                               reinterpret_cast<const std::byte*>(brains2)) == 0.5);
}
