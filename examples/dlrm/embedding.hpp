// Embedding tables: rows of weights that a batch looks up, and the sparse update of those rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hash.hpp"
#include "shared.hpp"

namespace dlrm {

template <class Scalar>
struct embedding_table {
  std::string name;
  std::size_t rows = 0;
  std::size_t dim = 0;
  std::vector<Scalar> weights;  ///< (rows, dim), a row's together
  std::vector<Scalar> adagrad;  ///< one a row: the sum of the mean squares of its gradients

  /// Small uniform weights, a function of `seed` alone.
  embedding_table(std::string its_name, std::size_t row_count, std::size_t elements, std::uint64_t seed)
      : name(std::move(its_name)), rows(row_count), dim(elements), weights(rows * dim), adagrad(rows) {
    const Scalar range = Scalar(0.25) / std::sqrt(static_cast<Scalar>(dim));
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = range * uniform(mix(seed, i));
  }

  /// Copies the rows of `ids` to columns of `dim`, `stride` elements apart.
  void gather(std::span<const std::uint64_t> ids, Scalar* to, std::size_t stride) const noexcept {
    constexpr std::size_t ahead = 8;  // rows lie all over memory: ask for them early
    for (std::size_t s = 0; s < ids.size(); ++s) {
      if (s + ahead < ids.size()) prefetch(ids[s + ahead]);
      shared::copy(weights.data() + ids[s] * dim, dim, to + s * stride);
    }
  }

  /// One step of row-wise Adagrad. `gradients` holds one column a sample, laid out as in gather(). A row that
  /// several samples looked up is updated once, by the sum of their gradients in sample order.
  /// `order` and `sum` are scratch memory.
  void update(std::span<const std::uint64_t> ids, const Scalar* gradients, std::size_t stride, Scalar rate,
              std::vector<std::uint64_t>& order, std::vector<Scalar>& sum) noexcept {
    order.resize(ids.size());
    for (std::size_t s = 0; s < ids.size(); ++s)
      order[s] = ids[s] << 16 | s;  // at most 65,536 samples, 2^48 rows
    std::sort(order.begin(), order.end());
    sum.resize(dim);
    for (std::size_t i = 0; i < order.size();) {
      const std::uint64_t row = order[i] >> 16;
      const Scalar* gradient = gradients + (order[i] & 0xffff) * stride;
      if (++i < order.size() && order[i] >> 16 == row) {
        std::copy_n(gradient, dim, sum.data());
        for (; i < order.size() && order[i] >> 16 == row; ++i) {
          const Scalar* const more = gradients + (order[i] & 0xffff) * stride;
          for (std::size_t k = 0; k < dim; ++k) sum[k] += more[k];
        }
        gradient = sum.data();
      }
      shared::row_wise_adagrad(weights.data() + row * dim, adagrad[row], gradient, dim, rate);
    }
  }

 private:
  void prefetch(std::uint64_t row) const noexcept {
    for (std::size_t i = 0; i < dim * sizeof(Scalar); i += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(weights.data() + row * dim) + i);
  }
};

}  // namespace dlrm
