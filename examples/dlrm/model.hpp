// DLRM (Naumov et al. 2019): a bottom MLP turns the numeric features into one vector, each categorical
// feature looks one up in its table, all pairs of vectors are multiplied, and a top MLP turns the products
// into a logit.
//
//     numeric (13) -> bottom MLP -> x0 (dim) --+--> x0 and the 351 products x_i . x_j, i > j -> top MLP ->
//     logit row t of table t  ----------> xt (dim) --+
//
// Gradients are those of the batch's summed loss; Adagrad, which divides by their size, makes the scale
// vanish.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "embedding.hpp"
#include "mlp.hpp"
#include "sample.hpp"

namespace dlrm {

inline constexpr std::size_t feature_count = table_count + 1;                          // x0 and the rows
inline constexpr std::size_t product_count = feature_count * (feature_count - 1) / 2;  // 351

struct model_options {
  std::size_t dim = 64;  ///< elements of a row; a multiple of 8
  table_sizes rows{};
  std::vector<std::size_t> bottom_hidden = {512, 256};
  std::vector<std::size_t> top_hidden = {512, 256};
  double table_rate = 0.02;  ///< Adagrad's learning rate on tables
  double dense_rate = 0.01;  ///< and on the MLPs
  std::uint64_t seed = 1;
};

/// Everything that one training step needs besides the parameters: one per thread.
template <class Scalar>
struct workspace {
  std::vector<Scalar> dense;  ///< this step's copy of the dense parameters
  std::vector<Scalar> dense_gradient;
  matrix<Scalar> numeric;   ///< (13, batch)
  matrix<Scalar> features;  ///< (dim, 27 * batch): a sample's vectors side by side
  matrix<Scalar> features_gradient;
  matrix<Scalar> top_input;  ///< (dim + 351, batch)
  matrix<Scalar> top_input_gradient;
  matrix<Scalar> bottom_gradient;  ///< (dim, batch), by the bottom MLP's output
  matrix<Scalar> products;         ///< (27, 27) of one sample
  matrix<Scalar> logit_gradient;   ///< (1, batch)
  mlp_activations<Scalar> bottom, top;
  std::vector<Scalar> logits;
  std::vector<std::uint64_t> order;
  std::vector<Scalar> row_sum;
};

template <class Scalar = float>
class model {
 public:
  /// What a checkpoint holds: every number that training changes.
  std::vector<embedding_table<Scalar>> tables;
  std::vector<Scalar> dense;          ///< both MLPs, bottom first
  std::vector<Scalar> dense_adagrad;  ///< as long as `dense`

  explicit model(const model_options& chosen)
      : options_(chosen),
        bottom_(chain(numeric_features, chosen.bottom_hidden, chosen.dim), true),
        top_(chain(chosen.dim + product_count, chosen.top_hidden, 1), false) {
    if (chosen.dim == 0 || chosen.dim % 8 != 0) throw std::invalid_argument("dim must be a multiple of 8");
    for (std::size_t t = 0; t < table_count; ++t)
      tables.emplace_back("C" + std::to_string(t + 1), chosen.rows[t], chosen.dim, mix(chosen.seed, 10 + t));
    dense.resize(bottom_.parameters() + top_.parameters());
    dense_adagrad.resize(dense.size());
    bottom_.initialize(dense.data(), mix(chosen.seed, 1));
    top_.initialize(dense.data() + bottom_.parameters(), mix(chosen.seed, 2));
  }

  [[nodiscard]] const model_options& options() const noexcept { return options_; }
  [[nodiscard]] const mlp<Scalar>& bottom() const noexcept { return bottom_; }
  [[nodiscard]] const mlp<Scalar>& top() const noexcept { return top_; }

  [[nodiscard]] std::size_t total_rows() const noexcept {
    std::size_t sum = 0;
    for (const auto& table : tables) sum += table.rows;
    return sum;
  }

  /// One step. Threads may call it at once, each with its own workspace: Hogwild.
  void train(const batch& samples, workspace<Scalar>& work) {
    forward(samples, work);
    backward(samples, work);
    update(samples, work);
  }

  /// Logits of the batch, left in work.logits too. Reads shared parameters only through shared.hpp.
  const std::vector<Scalar>& forward(const batch& samples, workspace<Scalar>& work) const {
    const auto size = static_cast<Eigen::Index>(samples.size());
    const auto dim = static_cast<Eigen::Index>(options_.dim);
    work.dense.resize(dense.size());
    shared::copy(dense.data(), dense.size(), work.dense.data());

    work.numeric = Eigen::Map<const matrix<float>>(samples.numeric.data(), numeric_features, size)
                       .template cast<Scalar>();
    const matrix<Scalar>& x0 = bottom_.forward(work.dense.data(), work.numeric, work.bottom);
    const std::size_t stride = feature_count * options_.dim;
    work.features.resize(dim, vectors * size);
    for (std::size_t t = 0; t < table_count; ++t)
      tables[t].gather(samples.rows[t], work.features.data() + (t + 1) * options_.dim, stride);

    work.top_input.resize(dim + Eigen::Index{product_count}, size);
    for (Eigen::Index s = 0; s < size; ++s) {
      auto x = work.features.middleCols(s * vectors, vectors);
      x.col(0) = x0.col(s);
      work.products.noalias() = x.transpose() * x;
      Scalar* to = work.top_input.col(s).data();
      for (Eigen::Index i = 0; i < dim; ++i) *to++ = x0(i, s);
      for (Eigen::Index i = 1; i < vectors; ++i)
        for (Eigen::Index j = 0; j < i; ++j) *to++ = work.products(j, i);
    }
    const matrix<Scalar>& out =
        top_.forward(work.dense.data() + bottom_.parameters(), work.top_input, work.top);
    work.logits.assign(out.data(), out.data() + size);
    return work.logits;
  }

  /// Gradients of the summed loss, after forward() with the same batch.
  void backward(const batch& samples, workspace<Scalar>& work) const {
    const auto size = static_cast<Eigen::Index>(samples.size());
    const auto dim = static_cast<Eigen::Index>(options_.dim);
    work.logit_gradient.resize(1, size);
    for (Eigen::Index s = 0; s < size; ++s) {
      const auto k = static_cast<std::size_t>(s);
      work.logit_gradient(0, s) =
          1 / (1 + std::exp(-work.logits[k])) - static_cast<Scalar>(samples.labels[k]);
    }
    work.dense_gradient.resize(dense.size());
    top_.backward(work.dense.data() + bottom_.parameters(), work.top_input, work.logit_gradient, work.top,
                  work.dense_gradient.data() + bottom_.parameters(), &work.top_input_gradient);

    work.features_gradient.resize(dim, vectors * size);
    work.bottom_gradient.resize(dim, size);
    for (Eigen::Index s = 0; s < size; ++s) {
      const Scalar* from = work.top_input_gradient.col(s).data() + dim;
      for (Eigen::Index i = 0; i < vectors; ++i) {  // symmetric, zero on the diagonal
        work.products(i, i) = 0;
        for (Eigen::Index j = 0; j < i; ++j) work.products(j, i) = work.products(i, j) = *from++;
      }
      auto x = work.features.middleCols(s * vectors, vectors);
      auto to_x = work.features_gradient.middleCols(s * vectors, vectors);
      to_x.noalias() = x * work.products;
      work.bottom_gradient.col(s) = to_x.col(0) + work.top_input_gradient.col(s).head(dim);
    }
    bottom_.backward(work.dense.data(), work.numeric, work.bottom_gradient, work.bottom,
                     work.dense_gradient.data(), nullptr);
  }

  /// Applies the gradients, after backward() with the same batch.
  void update(const batch& samples, workspace<Scalar>& work) {
    const std::size_t stride = feature_count * options_.dim;
    for (std::size_t t = 0; t < table_count; ++t)
      tables[t].update(samples.rows[t], work.features_gradient.data() + (t + 1) * options_.dim, stride,
                       static_cast<Scalar>(options_.table_rate), work.order, work.row_sum);
    shared::adagrad(dense.data(), dense_adagrad.data(), work.dense_gradient.data(), dense.size(),
                    static_cast<Scalar>(options_.dense_rate));
  }

 private:
  [[nodiscard]] static std::vector<std::size_t> chain(std::size_t in, std::vector<std::size_t> hidden,
                                                      std::size_t out) {
    hidden.insert(hidden.begin(), in);
    hidden.push_back(out);
    return hidden;
  }

  static constexpr Eigen::Index vectors = feature_count;  // Eigen's sizes are signed

  model_options options_;
  mlp<Scalar> bottom_, top_;
};

}  // namespace dlrm
