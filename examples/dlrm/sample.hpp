// What a click log holds: samples, where they come from, and the batches that a model trains on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dlrm {

inline constexpr std::size_t numeric_features = 13;
inline constexpr std::size_t table_count = 26;

/// One in this many samples is held out: never trained on, and what the final loss and AUC are measured on.
/// Sample (or line) i is held out where i % held_out_every == held_out_every - 1.
inline constexpr std::uint64_t held_out_every = 16;

[[nodiscard]] constexpr bool is_held_out(std::uint64_t index) noexcept {
  return index % held_out_every == held_out_every - 1;
}

using table_sizes = std::array<std::uint64_t, table_count>;  ///< rows of each embedding table

/// One line of a log.
struct sample {
  std::uint64_t index = 0;                        ///< its place in the log, held-out samples counted
  std::array<float, numeric_features> numeric{};  ///< scaled, ready for the model
  std::array<std::uint64_t, table_count> rows{};  ///< one row in each table
  float label = 0;                                ///< 1 where it was clicked
  float probability = 0;                          ///< the true click probability; the label where unknown
};

/// Where a source stands. Trivially copyable: it goes into a checkpoint as it is.
struct log_position {
  std::uint64_t next = 0;       ///< index of the next sample (files: lines read so far)
  std::uint64_t offset = 0;     ///< files: uncompressed bytes before the next line
  std::uint64_t malformed = 0;  ///< files: lines so far that were no samples

  bool operator==(const log_position&) const = default;
};

/// Which samples a source yields.
enum class part { train, held_out };

/// A log, read forward from any position. Used by one thread at a time.
class sample_source {
 public:
  virtual ~sample_source() = default;
  /// The next sample of this source's part; false at the end of the log. Throws where the log can't be read.
  virtual bool read(sample& to) = 0;
  [[nodiscard]] virtual log_position position() const = 0;
  virtual void seek(const log_position& to) = 0;
};

/// Samples side by side, as a model reads them.
struct batch {
  std::vector<std::uint64_t> indices;  ///< which samples these are
  std::vector<float> numeric;          ///< (numeric_features, size), a sample's together
  std::array<std::vector<std::uint64_t>, table_count> rows;  ///< per table: one row a sample, with duplicates
  std::vector<float> labels;
  std::vector<float> probabilities;

  [[nodiscard]] std::size_t size() const noexcept { return labels.size(); }

  void clear() noexcept {
    indices.clear();
    numeric.clear();
    for (auto& table : rows) table.clear();
    labels.clear();
    probabilities.clear();
  }

  void add(const sample& one) {
    indices.push_back(one.index);
    numeric.insert(numeric.end(), one.numeric.begin(), one.numeric.end());
    for (std::size_t t = 0; t < table_count; ++t) rows[t].push_back(one.rows[t]);
    labels.push_back(one.label);
    probabilities.push_back(one.probability);
  }
};

/// Fills `to` with up to `size` samples; false where the log had none left.
inline bool read_batch(sample_source& from, std::size_t size, batch& to) {
  to.clear();
  sample one;
  while (to.size() < size && from.read(one)) to.add(one);
  return to.size() > 0;
}

}  // namespace dlrm
