// How few bytes a row takes beside its codes, through the real checkpointer: row ids, parameters, headers,
// hashes, the manifest.
#include <checkrow/checkrow.hpp>
#include <cstdio>
#include <vector>

#include "catch_shim.hpp"
#include "row_kinds.hpp"

using namespace checkrow;
using row_kinds::kind;

namespace {

constexpr std::size_t dim = 64;

constexpr std::size_t rows = std::size_t{1} << 17;

std::vector<float> rows_of(kind of) {
  row_kinds::random_source random{static_cast<std::uint64_t>(of) + 11};
  std::vector<float> weights(rows * dim);
  for (std::size_t row = 0; row < rows; ++row)
    row_kinds::fill_row(random, of, {weights.data() + row * dim, dim});
  return weights;
}

/// Bytes a row of a delta, its codes and the optimizer's column apart. Each row is dirty with that
/// probability.
template <class Codec>
double metadata_bytes(std::vector<float>& weights, double dirty) {
  row_kinds::random_source random{29};
  std::vector<float> adagrad(rows);
  const memory sink;
  checkpointer<policies<Codec, one_shot, memory>> ckpt{Codec{}, one_shot{}, sink};
  auto table = ckpt.table("rows", weights, dim, {.columns = {{"adagrad", adagrad}}});
  const auto bytes_so_far = [&] {
    std::uint64_t bytes = 0;
    for (const blob& one : *sink.list()) bytes += sink.find(one.name)->size();
    return bytes;
  };
  ckpt.save(1);
  ckpt.finish();
  const std::uint64_t base = bytes_so_far();
  std::vector<std::int64_t> ids;
  for (std::size_t row = 0; row < rows; ++row)
    if (static_cast<double>(random.next() >> 11) * 0x1p-53 < dirty)
      ids.push_back(static_cast<std::int64_t>(row));
  table.touch(ids);
  ckpt.save(2);
  ckpt.finish();
  const std::size_t row_bytes = detail::packed_bytes(dim, Codec::bits) + 4;
  return static_cast<double>(bytes_so_far() - base) / static_cast<double>(ids.size()) -
         static_cast<double>(row_bytes);
}

template <class Codec>
void check_metadata(std::vector<float>& gaussian, const char* codec, double limit) {
  const double bytes = metadata_bytes<Codec>(gaussian, 0.25);
  std::printf("figure: beside its codes a row takes %.3f bytes: %s, %d bits, a quarter dirty\n", bytes, codec,
              int{Codec::bits});
  CHECK(bytes <= limit);
}

}  // namespace

TEST_CASE("row ids and parameters take few bytes") {
  std::vector<float> gaussian = rows_of(kind::gauss);
  check_metadata<uniform<2>>(gaussian, "uniform", 2.5);
  check_metadata<uniform<3>>(gaussian, "uniform", 2.5);
  check_metadata<uniform<4>>(gaussian, "uniform", 2.5);
  check_metadata<uniform<8>>(gaussian, "uniform", 3.3);
  check_metadata<adaptive<4, refit>>(gaussian, "refit", 2.5);
}

// Not a test: the figures of docs/design.md.
TEST_CASE("metadata by kind of row, bits and dirty share", "[.metadata]") {
  for (const kind of :
       {kind::gauss, kind::flat, kind::laplace, kind::heavy_tails, kind::outlier, kind::trained}) {
    std::vector<float> weights = rows_of(of);
    const auto line = [&]<class Codec>(const char* codec, Codec) {
      std::printf("rows of kind %2d, %-9s %d bits:", static_cast<int>(of), codec, int{Codec::bits});
      for (const double dirty : {0.5, 0.25, 0.1, 0.02})
        std::printf(" %.3f", metadata_bytes<Codec>(weights, dirty));
      std::printf("\n");
    };
    line("uniform", uniform<2>{});
    line("uniform", uniform<3>{});
    line("uniform", uniform<4>{});
    line("uniform", uniform<8>{});
    line("symmetric", uniform<4, symmetric>{});
    line("refit", adaptive<2, refit>{});
    line("refit", adaptive<4, refit>{});
  }
}
