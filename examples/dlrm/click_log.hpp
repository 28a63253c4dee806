// A click log without a file: sample i is a pure function of (seed, i).
//
// Ids. Each table's rows fall in three classes, the shape that Check-N-Run reports of production tables: a
// hot set (a fifth of the rows, Zipf-like, nearly all touched in every interval), warm rows (met about every
// fifth interval) and rows that are not met yet. The hot set drifts: each hot rank is held by a row for
// `lifetime` samples and passes to a new row then, at a moment of its own.
//
// Labels. Behind them stands a hidden model: an effect of each row, products of hidden vectors of pairs of
// tables, and the numeric features. Its click probability comes with each sample, so that a held-out loss can
// be measured without the noise of the labels.
//
// All of it is integer arithmetic (fixed point, 16 binary places), and the one curved function is a table
// made by the compiler, so the log is the same on every machine, with any flags.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>

#include "hash.hpp"
#include "sample.hpp"

namespace dlrm {

/// Rows of the 26 tables at scale 1: 837,565 in all.
inline constexpr table_sizes default_table_sizes = {
    80000, 80000, 70000, 70000, 60000, 60000, 60000, 50000, 50000, 50000, 40000, 40000, 40000,
    30000, 20000, 20000, 10000, 5000,  1000,  500,   500,   200,   200,   100,   50,    15};

/// The same tables, `scale` times smaller (none below 10 rows).
[[nodiscard]] constexpr table_sizes scaled_table_sizes(std::uint64_t scale) {
  table_sizes sizes = default_table_sizes;
  for (auto& rows : sizes) rows = std::max<std::uint64_t>(rows / scale, 10);
  return sizes;
}

namespace hidden {

/// 2^32 / (1 + e^-z) for z = 0, 1/64, ..., 8; the compiler computes it, without libm and without fma.
inline constexpr auto sigmoid_table = [] {
  std::array<std::uint64_t, 514> table{};
  double step = 1, term = 1;
  for (int n = 1; n < 12; ++n) step += (term *= -1.0 / 64 / n);  // e^(-1/64)
  double power = 1;
  for (auto& entry : table) {
    entry = static_cast<std::uint64_t>(4294967296.0 / (1 + power));
    power *= step;
  }
  return table;
}();

/// The logistic function: z with 16 binary places, the result with 32.
[[nodiscard]] constexpr std::uint64_t sigmoid(std::int64_t z) noexcept {
  const std::uint64_t size = std::min<std::uint64_t>(static_cast<std::uint64_t>(z < 0 ? -z : z), 8u << 16);
  const std::uint64_t entry = size >> 10, rest = size & 1023;
  const std::uint64_t p =
      sigmoid_table[entry] + ((sigmoid_table[entry + 1] - sigmoid_table[entry]) * rest >> 10);
  return z < 0 ? (std::uint64_t{1} << 32) - p : p;
}

/// A 16-bit piece of `bits` as a number in [-2^15, 2^15).
[[nodiscard]] constexpr std::int64_t piece(std::uint64_t bits, unsigned k) noexcept {
  return static_cast<std::int64_t>(bits >> (16 * k) & 0xffff) - 32768;
}

/// Four of them added: a bell curve with standard deviation 37,837.
[[nodiscard]] constexpr std::int64_t bell(std::uint64_t bits) noexcept {
  return piece(bits, 0) + piece(bits, 1) + piece(bits, 2) + piece(bits, 3);
}

}  // namespace hidden

/// The built-in log: endless, readable from any position at no cost.
class click_log final : public sample_source {
 public:
  struct options {
    std::uint64_t seed = 1;
    std::uint64_t scale = 1;  ///< tables and drift this many times smaller and faster
    part which = part::train;
    std::uint64_t end = ~std::uint64_t{0};  ///< the log ends before this sample
  };

  explicit click_log(const options& chosen) : options_(chosen), sizes_(scaled_table_sizes(chosen.scale)) {
    for (std::size_t t = 0; t < table_count; ++t) tables_[t] = make_table(t);
    for (std::size_t j = 0; j < numeric_features; ++j)
      numeric_weights_[j] = hidden::piece(key(numbers, j), 0);
    for (std::size_t p = 0; p < pair_count; ++p) {
      const std::uint64_t bits = key(pairs, p);
      const auto first = below(table_count, bits), other = below(table_count - 1, bits >> 32);
      pairs_[p] = {first, other + (other >= first)};
    }
  }

  [[nodiscard]] const table_sizes& sizes() const noexcept { return sizes_; }

  bool read(sample& to) override {
    while (is_held_out(next_) != (options_.which == part::held_out)) ++next_;
    if (next_ >= options_.end) return false;
    to = at(next_++);
    return true;
  }

  [[nodiscard]] log_position position() const override { return {.next = next_}; }
  void seek(const log_position& to) override { next_ = to.next; }

  /// Sample i, whichever part it belongs to.
  [[nodiscard]] sample at(std::uint64_t i) const {
    sample out;
    out.index = i;
    const std::uint64_t draw = mix(key(samples, 0), i);
    std::int64_t logit = bias;
    for (std::size_t j = 0; j < numeric_features; ++j) {
      const std::int64_t value = hidden::bell(mix(draw, 100 + j));
      out.numeric[j] = static_cast<float>(value) / 32768.0f;
      logit += (numeric_weights_[j] * value) >> 16;
    }
    std::array<std::uint64_t, table_count> vectors;
    for (std::size_t t = 0; t < table_count; ++t) {
      out.rows[t] = draw_row(tables_[t], sizes_[t], i, mix(draw, t));
      const std::uint64_t trait = mix(tables_[t].key, out.rows[t]);
      logit += (tables_[t].weight * hidden::bell(trait)) >> 16;
      vectors[t] = mix(trait);
    }
    std::int64_t products = 0;
    for (const auto& [a, b] : pairs_)
      for (unsigned k = 0; k < 4; ++k)
        products += hidden::piece(vectors[a], k) * hidden::piece(vectors[b], k);
    logit += (products * pair_weight) >> 26;

    const std::uint64_t probability = hidden::sigmoid(logit);  // 32 binary places
    out.label = (mix(draw, 200) >> 32) < probability ? 1.0f : 0.0f;
    out.probability = static_cast<float>(probability) / 4294967296.0f;
    return out;
  }

 private:
  static constexpr std::size_t pair_count = 24;
  static constexpr std::int64_t bias = -88474;       // -1.35, a click rate of three in ten
  static constexpr std::int64_t pair_weight = 1004;  // the pairs' sum has a standard deviation of about 0.8
  static constexpr std::uint64_t lifetime = 6'400'000;  // samples for which a row holds a hot rank
  enum stream : std::uint64_t { samples = 1, numbers, pairs, effects };

  struct table {
    std::uint64_t key = 0;
    std::uint64_t warm = 0, hot = 0;  ///< rows of either class
    std::uint64_t warm_draws = 0;     ///< how many of 2^32 draws meet a warm row
    std::uint64_t stride = 1;         ///< scatters places over rows: no class is a range of ids
    std::uint64_t lifetime = 1;
    std::int64_t weight = 0;  ///< of a row's effect on the logit
  };

  [[nodiscard]] std::uint64_t key(stream which, std::uint64_t k) const {
    return mix(mix(options_.seed, static_cast<std::uint64_t>(which)), k);
  }

  [[nodiscard]] table make_table(std::size_t t) const {
    const std::uint64_t rows = sizes_[t];
    table out;
    out.key = key(effects, t);
    out.hot = rows < 1000 ? rows : rows / 5;
    out.warm = rows < 1000 ? 0 : rows * 356 / 1000;
    out.warm_draws =
        out.warm ? rows * options_.scale * 4587 : 0;  // 0.192 meetings a row in 64,000 samples / scale
    out.stride = rows * 618 / 1000 + 1;
    while (std::gcd(out.stride, rows) != 1) ++out.stride;
    out.lifetime = std::max<std::uint64_t>(lifetime / options_.scale, 1);
    out.weight = static_cast<std::int64_t>(11283 + below(26328, mix(out.key)));
    if (rows <= 1000) out.weight *= 2;  // coarse features (country, device) say most
    return out;
  }

  /// Zipf-like: rank = hot * u^3, which has density rank^(-2/3).
  [[nodiscard]] static std::uint64_t draw_row(const table& in, std::uint64_t rows, std::uint64_t i,
                                              std::uint64_t bits) {
    const std::uint64_t u = bits >> 32;
    std::uint64_t place;
    if ((bits & 0xffffffffu) < in.warm_draws) {
      place = below(in.warm, u);
    } else {
      const std::uint64_t rank = below(in.hot, (((u * u) >> 32) * u) >> 32);
      const std::uint64_t moment = below(in.lifetime, mix(in.key, ~rank));
      const std::uint64_t holder = (i + moment) / in.lifetime;  // the how-manieth row to hold this rank
      place = in.warm + (rank + holder * in.hot) % (rows - in.warm);
    }
    return place * in.stride % rows;
  }

  options options_;
  table_sizes sizes_;
  std::array<table, table_count> tables_;
  std::array<std::int64_t, numeric_features> numeric_weights_;
  std::array<std::pair<std::size_t, std::size_t>, pair_count> pairs_;
  std::uint64_t next_ = 0;
};

}  // namespace dlrm
