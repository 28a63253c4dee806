// What a restore is asked for, and what it found.
#pragma once

#include <checkrow/error.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace checkrow::inline v0 {

struct row_range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

enum class consistency_level : unsigned char {
  consistent,  ///< checkpoints of the whole model only
  freshest,    ///< also rows saved by priority since: unsupported as yet
};

/// By default the newest checkpoint that is whole, into a model of exactly its schema. Fields marked (*) are
/// not built yet: anything but their default is an `unsupported` error, before anything is read.
struct restore_options {
  std::vector<std::string> tables{};                          ///< (*) only these
  std::optional<row_range> rows{};                            ///< (*) only these
  std::vector<std::pair<std::string, std::string>> rename{};  ///< (*) {saved name, name in the model}
  /// Only these columns, such as {"weights"} for evaluation without optimizer state. Saved columns, dense
  /// parameters and states that the model has not are then skipped, and columns of the model that are not
  /// listed stay as they are. The next save is a full one.
  std::vector<std::string> columns{};
  bool allow_more_rows = false;         ///< (*) the model may have more rows
  std::optional<std::uint64_t> step{};  ///< (*) the checkpoint of that step
  consistency_level consistency = consistency_level::consistent;
  /// Read and check everything before a row is written, so that a damaged checkpoint leaves the model as it
  /// was. Default: true once a table has been touched, saved or restored in this process.
  std::optional<bool> verify_first{};
};

/// What was restored.
struct restored {
  std::uint64_t step = 0;
  std::uint64_t sequence = 0;
  bool full = false;           ///< the checkpoint is one segment
  std::uint64_t restores = 0;  ///< real restores of this model's history, this one included
  std::uint64_t rows = 0;      ///< row records applied, superseded ones included
  std::uint64_t bytes = 0;     ///< read
  double seconds = 0;
  std::string strategy;                                       ///< that wrote it
  std::vector<std::pair<std::string, std::string>> metadata;  ///< yours
  std::vector<error> passed_over;  ///< newer checkpoints that were damaged, and why
};

}  // namespace checkrow::inline v0
