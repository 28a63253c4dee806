// Rows of many kinds for codec tests: usual ones, and those at the edges of every class of the arithmetic.
// The same rows everywhere: no <random> distributions, no libm, no contraction.
#pragma once

#include <bit>
#include <checkrow/detail/canonical.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace row_kinds {

CHECKROW_CANONICAL_BEGIN

/// splitmix64.
struct random_source {
  std::uint64_t state;

  std::uint64_t next() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }
  int between(int least, int most) {
    return least + static_cast<int>(below(static_cast<unsigned>(most - least + 1)));
  }
  /// In [0, 1), multiples of 2^-24.
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }
  /// Near enough to a standard normal: a sum of eight uniforms.
  float normal() {
    std::int64_t sum = 0;
    for (int word = 0; word < 2; ++word) {
      const std::uint64_t bits = next();
      for (int part = 0; part < 4; ++part) sum += static_cast<std::int64_t>(bits >> (16 * part) & 0xffff);
    }
    return static_cast<float>(sum - 4 * 65535) * (1.0f / 53510.0f);
  }
  /// Near enough to an exponential variable: linear between powers of two.
  float exponential() {
    const std::uint64_t bits = next() | 1;
    const int zeros = std::countl_zero(bits);
    const auto fraction = static_cast<float>((bits << zeros << 1) >> 40) * 0x1p-24f;
    return 0.6931472f * (static_cast<float>(zeros) + 1.0f - fraction);
  }
};

inline float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline float power_of_two(int exponent) {  // -126 to 127
  return float_of(static_cast<std::uint32_t>(exponent + 127) << 23);
}
inline bool finite(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7fffffffu) < 0x7f800000u; }
inline void replace_infinite(std::span<float> row, float by) {
  for (float& x : row)
    if (!finite(x)) x = by;
}

enum class kind {
  gauss,
  flat,
  laplace,
  heavy_tails,
  outlier,
  trained,
  positive,
  constant,
  far_from_zero,
  denormal,
  huge,
  random_bits,
  any_scale,
  integers,
  sparse,
  few_ulps,
  scale_edges,
  offset_edges,
  positive_from_zero,
  not_finite,
  zeros,
  two_values,
  one_denormal,
};
inline constexpr int kind_count = 23;

/// Rows as training leaves them.
inline void fill_usual(random_source& random, kind k, std::span<float> row) {
  const float scale = 0.05f * (0.25f + random.exponential());
  const float mean = k == kind::trained ? 0.3f * random.normal() : 0.0f;
  const std::size_t outlier = k == kind::outlier ? random.below(row.size()) : row.size();
  for (std::size_t i = 0; i < row.size(); ++i) {
    float x = random.normal();
    switch (k) {
      case kind::flat:
        x = 2.0f * random.uniform() - 1.0f;
        break;
      case kind::laplace:
        x = random.exponential() * (x < 0 ? -1.0f : 1.0f);
        break;
      case kind::heavy_tails:
        x = x * x * x;
        break;
      case kind::trained:
        x = (x + mean) * (0.3f + static_cast<float>(i * 0x9e3779b9u >> 24 & 0xff) * 0x1p-7f);
        break;
      case kind::positive:
        x = x * x;
        x = x * x;
        break;
      default:
        break;
    }
    row[i] = x * scale * (i == outlier ? 20.0f : 1.0f);
  }
}

/// Rows at the edges of the scale, of the offset and of the exponent.
inline void fill_edges(random_source& random, kind k, std::span<float> row) {
  const std::uint64_t r = random.next();
  const float sign = (r >> 60 & 1) != 0 ? -1.0f : 1.0f;
  float scale = 1.0f, offset = 0.0f;
  switch (k) {
    case kind::far_from_zero:
      scale = 0.001f;
      offset = 1000.0f * sign;
      break;
    case kind::any_scale:
      scale = power_of_two(static_cast<int>(r % 250) - 125);
      offset = random.normal() * scale * power_of_two(static_cast<int>(r >> 20 & 0xff) % 28);
      break;
    case kind::scale_edges:  // steps near the least and the greatest that have a code
      scale = power_of_two(-102 + static_cast<int>(r % 12) + ((r >> 20 & 1) != 0 ? 127 : 0));
      break;
    case kind::offset_edges:
      scale = 2.0f;
      offset = (1948.0f + static_cast<float>(r % 200)) * sign * (1.0f + 0.1f * random.normal());
      break;
    case kind::huge:
      scale = 1e38f;
      break;
    default:
      scale = 1e-40f;  // denormal
      break;
  }
  for (float& x : row) x = offset + scale * random.normal();
  replace_infinite(row, k == kind::huge ? 3e38f : 1.0f);
}

/// Rows of few values.
inline void fill_few(random_source& random, kind k, std::span<float> row) {
  const std::uint64_t r = random.next();
  const float one = random.normal(), other = random.normal();
  const float scale = power_of_two(static_cast<int>(r % 20) - 10);
  for (float& x : row) {
    const std::uint64_t u = random.next();
    switch (k) {
      case kind::constant:
        x = one;
        break;
      case kind::integers:
        x = scale * static_cast<float>(static_cast<int>(u % (1 + (std::uint64_t{1} << (r >> 30) % 9))) -
                                       static_cast<int>((r >> 40) % 300));
        break;
      case kind::sparse:
        x = (u & 3) != 0 ? 0.0f : random.normal();
        break;
      case kind::few_ulps:  // around a power of two
        x = power_of_two(static_cast<int>(r % 8)) *
            (1.0f + static_cast<float>(static_cast<int>(u % 64) << (r >> 8) % 6) *
                        ((r >> 16 & 1) != 0 ? 0x1p-24f : -0x1p-24f));
        break;
      case kind::two_values:
        x = (u & 1) != 0 ? one : other;
        break;
      default:  // zeros
        x = (u & 1) != 0 ? 0.0f : -0.0f;
        break;
    }
  }
  if (k == kind::sparse && (r >> 50 & 1) != 0) row[0] = -0.0f;
}

inline void fill_row(random_source& random, kind k, std::span<float> row) {
  const std::uint64_t r = random.next();
  switch (k) {
    case kind::gauss:
    case kind::flat:
    case kind::laplace:
    case kind::heavy_tails:
    case kind::outlier:
    case kind::trained:
    case kind::positive:
      return fill_usual(random, k, row);
    case kind::far_from_zero:
    case kind::any_scale:
    case kind::scale_edges:
    case kind::offset_edges:
    case kind::huge:
    case kind::denormal:
      return fill_edges(random, k, row);
    case kind::constant:
    case kind::integers:
    case kind::sparse:
    case kind::few_ulps:
    case kind::two_values:
    case kind::zeros:
      return fill_few(random, k, row);
    case kind::random_bits:
      for (float& x : row) x = float_of(static_cast<std::uint32_t>(random.next()));
      if ((r & 1) != 0) replace_infinite(row, 0.0f);
      return;
    case kind::positive_from_zero:
      for (float& x : row) x = random.uniform() * 1e-5f;
      row[r % row.size()] = 0.0f;
      return;
    case kind::not_finite:
      fill_usual(random, kind::gauss, row);
      row[(r >> 8) % row.size()] = float_of((r & 1) != 0   ? 0x7fc00000u
                                            : (r & 2) != 0 ? 0x7f800000u
                                                           : 0xff800001u);
      return;
    case kind::one_denormal:
      fill_usual(random, kind::gauss, row);
      row[(r >> 8) % row.size()] = float_of((r & 1) != 0 ? 0x80000001u : 0x00012345u);
      return;
  }
}

CHECKROW_CANONICAL_END

}  // namespace row_kinds
