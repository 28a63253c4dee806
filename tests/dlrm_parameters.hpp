// Everything that a DLRM has learnt, in one vector, to be compared.
#pragma once

#include <vector>

#include "../examples/dlrm/model.hpp"

inline std::vector<float> all_parameters(const dlrm::model<float>& of) {
  std::vector<float> all = of.dense;
  all.insert(all.end(), of.dense_adagrad.begin(), of.dense_adagrad.end());
  for (const auto& table : of.tables) {
    all.insert(all.end(), table.weights.begin(), table.weights.end());
    all.insert(all.end(), table.adagrad.begin(), table.adagrad.end());
  }
  return all;
}
