// How good a model is: cross-entropy and AUC.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model.hpp"
#include "sample.hpp"

namespace dlrm {

/// Cross-entropy of one prediction: log(1 + e^logit) - probability * logit, without overflow.
[[nodiscard]] inline double cross_entropy(double logit, double probability) noexcept {
  return std::max(logit, 0.0) + std::log1p(std::exp(-std::abs(logit))) - probability * logit;
}

/// The area under the ROC curve: how often a clicked sample scores above one that wasn't, ties counted half.
/// NaN where either kind is missing.
[[nodiscard]] inline double auc(std::span<const float> scores, std::span<const float> labels) {
  std::vector<std::pair<float, float>> sorted(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) sorted[i] = {scores[i], labels[i]};
  std::sort(sorted.begin(), sorted.end());
  double clicks = 0, others = 0, wins = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    double tied_clicks = 0, tied_others = 0;
    for (const float score = sorted[i].first; i < sorted.size() && sorted[i].first == score; ++i)
      (sorted[i].second > 0.5f ? tied_clicks : tied_others) += 1;
    wins += tied_clicks * (others + tied_others / 2);
    clicks += tied_clicks;
    others += tied_others;
  }
  return wins / (clicks * others);
}

struct quality {
  double loss = 0;  ///< mean cross-entropy, against the true click probabilities where the log knows them
  double auc = 0;   ///< against the labels
  std::size_t samples = 0;
};

/// Scores what `held_out` yields.
template <class Scalar>
[[nodiscard]] quality evaluate(const model<Scalar>& trained, sample_source& held_out) {
  workspace<Scalar> work;
  batch samples;
  std::vector<float> scores, labels;
  double loss = 0;
  while (read_batch(held_out, 256, samples)) {
    const auto& logits = trained.forward(samples, work);
    for (std::size_t s = 0; s < samples.size(); ++s) {
      loss += cross_entropy(static_cast<double>(logits[s]), static_cast<double>(samples.probabilities[s]));
      scores.push_back(static_cast<float>(logits[s]));
      labels.push_back(samples.labels[s]);
    }
  }
  return {loss / static_cast<double>(scores.size()), auc(scores, labels), scores.size()};
}

}  // namespace dlrm
