// Optimizer columns with an encoding of their own.
#include <checkrow/checkrow.hpp>
#include <cmath>
#include <limits>

#include "catch_shim.hpp"
#include "codec_contract.hpp"

using namespace checkrow;

namespace {

constexpr std::size_t rows = 700, dim = 24;
using codecs = codec_set<adaptive<4>, uniform<8>, two_bytes, uniform<4, symmetric>>;

/// Adam's columns and a row-wise accumulator.
struct adam {
  std::vector<float> weights = std::vector<float>(rows * dim), m = weights, v = weights,
                     sums = std::vector<float>(rows);
  std::vector<std::int64_t> steps = std::vector<std::int64_t>(rows);

  void train(std::uint64_t seed, std::size_t every) {
    row_kinds::random_source random{seed};
    for (std::size_t i = 0; i < rows; i += every) {
      for (std::size_t d = 0; d < dim; ++d) {
        const float gradient = random.normal() * row_kinds::power_of_two(-static_cast<int>(d % 12));
        m[i * dim + d] = 0.9f * m[i * dim + d] + 0.1f * gradient;
        v[i * dim + d] = 0.99f * v[i * dim + d] + 0.01f * gradient * gradient;
        weights[i * dim + d] += gradient;
        sums[i] += gradient * gradient;
      }
      steps[i] = static_cast<std::int64_t>(seed);
    }
  }
  auto attach(auto& ckpt) {
    return ckpt.table("t", weights, dim,
                      {.columns = {{"m", m, dim, uniform<8>{}},
                                   {"v", v, dim, two_bytes{}},
                                   {"sums", strided<float>{sums.data(), sizeof(float), rows}, 1, two_bytes{}},
                                   {"steps", steps}},
                       .codec = adaptive<4>{}});
  }
};

double change_of(std::span<const float> had, std::span<const float> read) {
  double elements = 0, changes = 0;
  for (std::size_t i = 0; i < had.size(); ++i) {
    elements += double{had[i]} * double{had[i]};
    changes += (double{read[i]} - double{had[i]}) * (double{read[i]} - double{had[i]});
  }
  return std::sqrt(changes / elements);
}

}  // namespace

TEST_CASE("Columns are restored by the encoding of each, and come back the same again") {
  memory store;
  adam model;
  checkpointer ckpt{codecs{}, consecutive{}, store, options{.error_sample = 1}};
  auto table = model.attach(ckpt);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const std::size_t every = step == 1 ? 1 : 3;
    for (std::size_t i = 0; i < rows; i += every) table.touch(std::vector{i});
    model.train(step, every);
    const ticket saved = ckpt.save(step);
    saved.wait();
    const auto& errors = saved.figures().errors;
    REQUIRE(errors.size() == 4);  // in order of name, weights first; not the steps
    CHECK(errors[0].column == "weights");
    CHECK(errors[1].column == "m");
    CHECK(errors[2].column == "sums");
    CHECK(errors[3].column == "v");
    CHECK(errors[2].largest <= 0x1p-8);
  }
  ckpt.finish();

  adam read;
  memory again;
  checkpointer reader{codecs{}, store};
  read.attach(reader);
  REQUIRE(reader.restore());
  CHECK(read.steps == model.steps);
  CHECK(change_of(model.weights, read.weights) < 0.2);
  CHECK(change_of(model.m, read.m) < 0.01);
  CHECK(change_of(model.v, read.v) < 0x1p-9);
  CHECK(change_of(model.sums, read.sums) < 0x1p-9);
  for (std::size_t i = 0; i < model.v.size(); ++i)  // each element, however small beside its row
    REQUIRE(std::abs(model.v[i] - read.v[i]) <= model.v[i] * 0x1p-8f);

  const adam once = read;
  checkpointer second{codecs{}, again};
  read.attach(second);
  second.save(1).wait();
  adam twice;
  checkpointer third{codecs{}, again};
  twice.attach(third);
  REQUIRE(third.restore());
  CHECK(twice.weights == once.weights);
  CHECK(twice.m == once.m);
  CHECK(twice.v == once.v);
  CHECK(twice.sums == once.sums);
}

TEST_CASE("A column's encoding is checked when its table is registered") {
  std::vector<float> weights(20), one(10);
  std::vector<std::int32_t> counts(20);
  checkpointer ckpt{codec_set{exact{}, uniform<8>{}, two_bytes{}}, memory{}};
  const auto refused = [&](column with, const char* what) {
    const auto table = ckpt.try_table("t", weights, 2, {.columns = {std::move(with)}, .codec = exact{}});
    if (table.ok() || table.error().kind != error_kind::misuse) return false;
    return table.error().text().find(what) != std::string::npos;
  };
  CHECK(refused({"m", weights, 2, uniform<4>{}}, "not in the checkpointer's codec_set"));
  CHECK(refused({"m", one, 1, uniform<8>{}}, "column m"));
  CHECK(refused({"m", counts, 2, two_bytes{}}, "cannot encode int32"));
  CHECK(ckpt.try_table("t", weights, 2,
                       {.columns = {{"m", one, 1, two_bytes{}}, {"c", counts, 2, exact{}}}, .codec = exact{}})
            .ok());
}

TEST_CASE("two_bytes keeps each element within half an ulp of bfloat16, and the finite finite", "[codec]") {
  const auto encoded = [](float x) { return detail::finite_bfloat16(std::bit_cast<std::uint32_t>(x)); };
  CHECK(encoded(1.0f) == 0x3f80);
  CHECK(encoded(1.00390625f) == 0x3f80);  // half way: to even
  CHECK(encoded(1.01171875f) == 0x3f82);
  CHECK(encoded(-1.01171875f) == 0xbf82);
  CHECK(encoded(std::numeric_limits<float>::max()) == 0x7f7f);
  CHECK(encoded(std::numeric_limits<float>::infinity()) == 0x7f80);
  CHECK(encoded(-std::numeric_limits<float>::max()) == 0xff7f);
  CHECK((encoded(std::numeric_limits<float>::quiet_NaN()) & 0x7fff) > 0x7f80);
  CHECK(encoded(std::bit_cast<float>(0x7f800001u)) == 0x7fc0);
  CHECK(encoded(-0.0f) == 0x8000);
  codec_contract::check_idempotence(two_bytes{});
  codec_contract::check_no_rows(two_bytes{});
  codec_contract::check_hostile_bytes(two_bytes{});
  codec_contract::check_views(two_bytes{});
  codec_contract::check_float_environment(two_bytes{});
}
