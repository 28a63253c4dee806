// A stack of dense layers over one flat vector of parameters. Samples are columns.
#pragma once

#ifndef EIGEN_DONT_PARALLELIZE
#define EIGEN_DONT_PARALLELIZE  // one thread a step: the same bits in every run, and Hogwild threads of our
                                // own
#endif
#include <Eigen/Core>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hash.hpp"

namespace dlrm {

template <class Scalar>
using matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

/// What a pass through an mlp leaves behind, for the pass back. One per thread.
template <class Scalar>
struct mlp_activations {
  std::vector<matrix<Scalar>> outputs;  ///< (width, batch) of each layer
  std::vector<matrix<Scalar>> deltas;   ///< the loss's gradient by each layer's output before its relu
};

/// Layers of y = relu(W x + b); the last one may go without relu. Holds shapes alone: parameters and
/// gradients are flat vectors of parameters() elements, per layer W (out, in) column-major, then b.
template <class Scalar>
class mlp {
 public:
  mlp(std::vector<std::size_t> widths, bool relu_at_end)
      : widths_(std::move(widths)), relu_at_end_(relu_at_end) {}

  [[nodiscard]] std::size_t layers() const noexcept { return widths_.size() - 1; }
  [[nodiscard]] const std::vector<std::size_t>& widths() const noexcept { return widths_; }

  [[nodiscard]] std::size_t parameters() const noexcept { return offset(layers()); }

  /// Glorot's uniform weights, biases of zero.
  void initialize(Scalar* parameters, std::uint64_t seed) const {
    for (std::size_t l = 0; l < layers(); ++l) {
      const std::size_t in = widths_[l], out = widths_[l + 1];
      const Scalar range = std::sqrt(Scalar(6) / static_cast<Scalar>(in + out));
      for (std::size_t i = 0; i < in * out; ++i) *parameters++ = range * uniform(mix(mix(seed, l), i));
      for (std::size_t i = 0; i < out; ++i) *parameters++ = 0;
    }
  }

  const matrix<Scalar>& forward(const Scalar* parameters, const matrix<Scalar>& input,
                                mlp_activations<Scalar>& pass) const {
    pass.outputs.resize(layers());
    pass.deltas.resize(layers());
    for (std::size_t l = 0; l < layers(); ++l) {
      const matrix<Scalar>& x = l == 0 ? input : pass.outputs[l - 1];
      matrix<Scalar>& y = pass.outputs[l];
      y.resize(rows(l + 1), x.cols());
      y.noalias() = weights(parameters, l) * x;
      y.colwise() += biases(parameters, l);
      if (has_relu(l)) y = y.cwiseMax(Scalar(0));
    }
    return pass.outputs.back();
  }

  /// `to_output` is the loss's gradient by the output (after its relu). Writes the gradient by every
  /// parameter and, unless null, by the input.
  void backward(const Scalar* parameters, const matrix<Scalar>& input, const matrix<Scalar>& to_output,
                mlp_activations<Scalar>& pass, Scalar* gradient, matrix<Scalar>* to_input) const {
    pass.deltas.back() = to_output;
    for (std::size_t l = layers(); l-- > 0;) {
      matrix<Scalar>& delta = pass.deltas[l];
      if (has_relu(l)) delta.array() *= (pass.outputs[l].array() > Scalar(0)).template cast<Scalar>();
      const matrix<Scalar>& x = l == 0 ? input : pass.outputs[l - 1];
      Scalar* const to_weights = gradient + offset(l);
      Eigen::Map<matrix<Scalar>>(to_weights, rows(l + 1), rows(l)).noalias() = delta * x.transpose();
      Eigen::Map<column> to_biases(to_weights + widths_[l] * widths_[l + 1], rows(l + 1));
      to_biases.setZero();  // not delta.rowwise().sum(): its order of adding depends on where the memory lies
      for (Eigen::Index s = 0; s < delta.cols(); ++s) to_biases += delta.col(s);
      matrix<Scalar>* const below = l > 0 ? &pass.deltas[l - 1] : to_input;
      if (below) {
        below->resize(rows(l), x.cols());
        below->noalias() = weights(parameters, l).transpose() * delta;
      }
    }
  }

 private:
  using column = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

  [[nodiscard]] bool has_relu(std::size_t l) const noexcept { return relu_at_end_ || l + 1 < layers(); }
  [[nodiscard]] Eigen::Index rows(std::size_t l) const noexcept {
    return static_cast<Eigen::Index>(widths_[l]);
  }

  [[nodiscard]] std::size_t offset(std::size_t layer) const noexcept {
    std::size_t sum = 0;
    for (std::size_t l = 0; l < layer; ++l) sum += (widths_[l] + 1) * widths_[l + 1];
    return sum;
  }
  [[nodiscard]] Eigen::Map<const matrix<Scalar>> weights(const Scalar* parameters, std::size_t l) const {
    return {parameters + offset(l), rows(l + 1), rows(l)};
  }
  [[nodiscard]] Eigen::Map<const column> biases(const Scalar* parameters, std::size_t l) const {
    return {parameters + offset(l) + widths_[l] * widths_[l + 1], rows(l + 1)};
  }

  std::vector<std::size_t> widths_;
  bool relu_at_end_;
};

}  // namespace dlrm
