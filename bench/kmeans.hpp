// The yardstick of the Check-N-Run paper: each row's elements by 2^bits centroids of its own, found by
// one-dimensional k-means. Far too slow and too large to be a codec: 2^bits floats a row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace bench {

/// Lloyd's algorithm on a sorted row, whose clusters are runs of it: at most 50 turns. Returns the squared
/// error.
inline double kmeans(std::span<const float> sorted, std::vector<double>& centers) {
  std::vector<double> sums(sorted.size() + 1, 0), squares = sums;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    sums[i + 1] = sums[i] + double{sorted[i]};
    squares[i + 1] = squares[i] + double{sorted[i]} * double{sorted[i]};
  }
  double error = 0;
  for (int turn = 0; turn < 50; ++turn) {
    bool moved = false;
    std::size_t begin = 0;
    error = 0;
    for (std::size_t k = 0; k < centers.size(); ++k) {
      std::size_t end = sorted.size();
      if (k + 1 < centers.size()) {
        const auto middle = static_cast<float>((centers[k] + centers[k + 1]) / 2);
        const auto after = std::upper_bound(sorted.begin(), sorted.end(), middle);
        end = std::max(begin, static_cast<std::size_t>(after - sorted.begin()));
      }
      if (end > begin) {
        const double sum = sums[end] - sums[begin], mean = sum / static_cast<double>(end - begin);
        moved |= mean != centers[k];
        centers[k] = mean;
        error += squares[end] - squares[begin] - sum * mean;
      }
      begin = end;
    }
    if (!moved) break;
  }
  return error;
}

/// Writes each element's centroid to `out`. The better of two starts: evenly spaced in the row's order and in
/// its range.
inline void kmeans_row(std::span<const float> row, std::size_t clusters, std::span<float> out) {
  std::vector<float> sorted(row.begin(), row.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> centers(clusters), others(clusters);
  const double low = double{sorted.front()}, across = double{sorted.back()} - low;
  for (std::size_t k = 0; k < clusters; ++k) {
    centers[k] = double{sorted[(2 * k + 1) * sorted.size() / (2 * clusters)]};
    others[k] = low + across * (static_cast<double>(k) + 0.5) / static_cast<double>(clusters);
  }
  if (kmeans(sorted, others) < kmeans(sorted, centers)) centers = others;
  std::sort(centers.begin(), centers.end());
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double x = double{row[i]};
    const auto above = std::lower_bound(centers.begin(), centers.end(), x);
    const bool below = above == centers.end() || (above != centers.begin() && x - above[-1] < *above - x);
    out[i] = static_cast<float>(below ? above[-1] : *above);
  }
}

}  // namespace bench
