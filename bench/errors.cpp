// What each codec loses and what it takes: error against bytes a row, and the bytes beside the codes.
//
//     bench_errors [--quick] [--json FILE] [--trained FILE DIM]
//
// Trained rows are those of examples/dlrm, which is trained here for a moment (where Eigen is there), or,
// with
// --trained, float32 rows of DIM elements, raw.
#include <checkrow/checkrow.hpp>
#include <checkrow/detail/row_errors.hpp>
#include <checkrow/format/row_ids.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kmeans.hpp"

#if defined(CHECKROW_BENCH_TRAINED)
#include "../examples/dlrm/click_log.hpp"
#include "../examples/dlrm/model.hpp"
#include "../examples/dlrm/train.hpp"
#endif

namespace {

using namespace checkrow;

/// (rows, dim), packed.
struct rows_of {
  std::string name;
  std::size_t dim;
  std::vector<float> values;
  [[nodiscard]] std::size_t count() const { return values.size() / dim; }
};

template <class Distribution>
rows_of random_rows(const char* name, std::size_t dim, std::size_t count, Distribution one) {
  std::mt19937 random(11);
  rows_of rows{name, dim, std::vector<float>(count * dim)};
  for (float& x : rows.values) x = 0.05f * one(random);
  return rows;
}

double mean_error(const rows_of& rows, const std::vector<float>& read) {
  const column_shape shape{element_type::float32, 4, static_cast<std::uint32_t>(rows.dim)};
  double sum = 0;
  for (std::size_t i = 0; i < rows.values.size(); i += rows.dim)
    sum += detail::relative_error(shape, reinterpret_cast<const std::byte*>(&rows.values[i]),
                                  reinterpret_cast<const std::byte*>(&read[i]));
  return sum / static_cast<double>(rows.count());
}

struct outcome {
  double error, bytes;
};

template <class Codec>
outcome measure(const Codec& codec, const rows_of& rows) {
  const column_shape shape{element_type::float32, 4, static_cast<std::uint32_t>(rows.dim)};
  std::vector<std::byte> section(codec.bound(shape, rows.count()));
  std::vector<float> read(rows.values.size());
  section.resize(codec.encode(shape, {reinterpret_cast<const std::byte*>(rows.values.data()), 4 * rows.dim},
                              rows.count(), section.data()));
  if (!codec.decode(shape, section, rows.count(), {reinterpret_cast<std::byte*>(read.data()), 4 * rows.dim}))
    std::exit(1);
  return {mean_error(rows, read), static_cast<double>(section.size()) / static_cast<double>(rows.count())};
}

outcome measure_kmeans(int bits, const rows_of& rows) {
  std::vector<float> read(rows.values.size());
  for (std::size_t i = 0; i < read.size(); i += rows.dim)
    bench::kmeans_row(std::span(rows.values).subspan(i, rows.dim), std::size_t{1} << bits,
                      std::span(read).subspan(i, rows.dim));
  return {mean_error(rows, read),
          static_cast<double>(detail::packed_bytes(rows.dim, bits)) + static_cast<double>(4 << bits)};
}

std::FILE* json = nullptr;

void line(const rows_of& rows, const char* codec, int bits, outcome got, double greedy) {
  std::printf("%-10s %4zu  %-20s %d bits %9.5f %9.4f %9.2f\n", rows.name.c_str(), rows.dim, codec, bits,
              got.error, got.error / greedy, got.bytes);
  std::fflush(stdout);
  if (json == nullptr) return;
  std::fprintf(json, R"({"rows": "%s", "dim": %zu, "codec": "%s", "bits": %d, "rel_error": %.6f, )",
               rows.name.c_str(), rows.dim, codec, bits, got.error);
  std::fprintf(json, "\"error_vs_greedy\": %.4f, \"bytes_per_row\": %.3f}\n", got.error / greedy, got.bytes);
}

template <int Bits>
void compare(const rows_of& rows) {
  const outcome searched = measure(adaptive<Bits, greedy>{}, rows);
  line(rows, "uniform symmetric", Bits, measure(uniform<Bits, symmetric>{}, rows), searched.error);
  line(rows, "uniform asymmetric", Bits, measure(uniform<Bits>{}, rows), searched.error);
  line(rows, "adaptive greedy", Bits, searched, searched.error);
  line(rows, "adaptive refit", Bits, measure(adaptive<Bits>{}, rows), searched.error);
  if (Bits < 8) line(rows, "k-means", Bits, measure_kmeans(Bits, rows), searched.error);
}

/// Bytes of a chunk beside its codes, a share of the rows dirty.
void metadata(int bits, codec_choice codec, const rows_of& rows, double dirty) {
  const detail::erased_codecs<detail::builtin_codecs> codecs{detail::builtin_codecs{}};
  const column_shape shape{element_type::float32, 4, static_cast<std::uint32_t>(rows.dim)};
  std::mt19937 random(5);
  std::vector<std::uint64_t> ids;
  for (std::uint64_t id = 0; id < rows.count(); ++id)
    if (random() < dirty * 4294967296.0) ids.push_back(id);
  const auto n = static_cast<double>(ids.size());
  const double index = static_cast<double>(format::plan_index(ids).bytes) / n;
  std::vector<std::byte> section(codecs.bound(codec, shape, ids.size()));
  const std::size_t bytes = codecs.encode(
      codec, shape, {reinterpret_cast<const std::byte*>(rows.values.data()), 4 * rows.dim, ids.data()},
      ids.size(), section.data());
  const auto codes = static_cast<double>(detail::packed_bytes(rows.dim, bits));
  const double ours = static_cast<double>(bytes) / n - codes + index, theirs = 12;
  const double entropy = (-dirty * std::log2(dirty) - (1 - dirty) * std::log2(1 - dirty)) / dirty / 8;
  std::printf("%4zu %6d %9.1f %% %8.2f %6.1f %% %9.1f %% %8.3f %8.3f %7.3f\n", rows.dim, bits, 100 * dirty,
              ours, 100 * ours / (codes + ours), 100 * theirs / (codes + theirs), index, entropy,
              index / entropy);
  if (json == nullptr) return;
  std::fprintf(json, R"({"dim": %zu, "bits": %d, "dirty": %.4f, "metadata_bytes_per_row": %.4f, )", rows.dim,
               bits, dirty, ours);
  std::fprintf(json, R"("metadata_share": %.4f, "plain_metadata_share": %.4f, )", ours / (codes + ours),
               theirs / (codes + theirs));
  std::fprintf(json, "\"id_bytes_per_row\": %.4f, \"id_entropy_bytes\": %.4f}\n", index, entropy);
}

rows_of trained_rows(const char* file, std::size_t dim) {
  rows_of rows{"trained", dim, {}};
  std::ifstream in(file, std::ios::binary);
  std::vector<float> row(dim);
  while (in.read(reinterpret_cast<char*>(row.data()), static_cast<std::streamsize>(4 * dim)))
    rows.values.insert(rows.values.end(), row.begin(), row.end());
  return rows;
}

#if defined(CHECKROW_BENCH_TRAINED)
/// Rows that the DLRM example has trained, as they are after `steps` batches of its small job: of each of its
/// 26 tables as many, those with the largest sums of squared gradients.
rows_of trained_rows(std::uint64_t steps, std::size_t count) {
  dlrm::click_log log({.scale = 8});
  dlrm::reader batches(log, 128);
  dlrm::model<float> trained({.rows = dlrm::scaled_table_sizes(8)});
  dlrm::progress silent(std::fopen("/dev/null", "w"), 0, steps);
  dlrm::no_checkpoints none;
  dlrm::train(trained, batches, none, silent, {.last_step = steps, .interval = steps});
  const std::size_t dim = trained.options().dim, each = count / trained.tables.size() + 1;
  rows_of rows{"trained", dim, {}};
  for (const auto& table : trained.tables) {
    std::vector<std::size_t> order(table.rows);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return table.adagrad[a] > table.adagrad[b]; });
    order.resize(std::min(each, order.size()));
    for (const std::size_t row : order)
      if (table.adagrad[row] != 0)
        rows.values.insert(rows.values.end(), &table.weights[row * dim], &table.weights[row * dim] + dim);
  }
  return rows;
}
#endif

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 4000;
  std::vector<rows_of> all;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick")
      count = 400;
    else if (word == "--json" && i + 1 < argc)
      json = std::fopen(argv[++i], "w");
    else if (word == "--trained" && i + 2 < argc) {
      all.push_back(trained_rows(argv[i + 1], std::strtoull(argv[i + 2], nullptr, 10)));
      i += 2;
    } else {
      std::fprintf(stderr, "usage: bench_errors [--quick] [--json FILE] [--trained FILE DIM]\n");
      return 2;
    }
  }
  const std::size_t dim = 64;
#if defined(CHECKROW_BENCH_TRAINED)
  if (all.empty()) all.push_back(trained_rows(count == 400 ? 300 : 2000, count));
#endif
  all.push_back(random_rows("Gaussian", dim, count, std::normal_distribution<float>()));
  all.push_back(random_rows("uniform", dim, count, std::uniform_real_distribution<float>(-1, 1)));
  all.push_back(random_rows("heavy", dim, count, std::student_t_distribution<float>(3)));
  std::printf("%-10s %4s  %-27s %9s %9s %9s\n", "rows", "dim", "codec", "error", "vs greedy", "bytes/row");
  for (const rows_of& rows : all) {
    compare<2>(rows);
    compare<3>(rows);
    compare<4>(rows);
    compare<8>(rows);
  }
  std::printf(
      "\nbytes beside the codes; plain: two fp32 parameters and a 4-byte id\n%4s %6s %11s %8s %8s %11s %8s "
      "%8s %7s\n",
      "dim", "bits", "dirty", "bytes", "share", "plain share", "id bytes", "entropy", "ratio");
  for (const std::size_t width : {16, 64, 128}) {
    const rows_of rows =
        random_rows("Gaussian", width, count == 400 ? 100000 : 400000, std::normal_distribution<float>());
    for (const double dirty : {0.5, 0.25, 0.1, 0.02, 0.005}) {
      metadata(2, adaptive<2>{}, rows, dirty);
      metadata(3, adaptive<3>{}, rows, dirty);
      metadata(4, adaptive<4>{}, rows, dirty);
      metadata(8, uniform<8>{}, rows, dirty);
    }
  }
  if (json != nullptr) std::fclose(json);
}
