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

/// In which order the segments of a checkpoint are applied. The result is the same.
enum class restore_order : unsigned char {
  fastest,       ///< oldest first, unless deltas hold more than twice as many rows as the base
  oldest_first,  ///< later rows overwrite earlier ones
  newest_first,  ///< a bit for each restored row (so much more memory); older records of it are skipped
};

/// By default the newest checkpoint that is whole, into a model of exactly its schema. Restoring less than
/// everything (tables, rows, columns), under other names, or into more rows makes the next save a full one.
struct restore_options {
  /// Only these tables of the model, by its names. Saved tables that the model has not are then skipped, and
  /// other tables, dense parameters and states stay as they are.
  std::vector<std::string> tables{};
  /// Only these rows of each table, which have to be among those saved. Dense parameters and states stay as
  /// they are.
  std::optional<row_range> rows{};
  /// Tables: {saved name, name in the model}. A saved table of a name that another one is renamed to has no
  /// place in the model; skip it with .tables.
  std::vector<std::pair<std::string, std::string>> rename{};
  /// Only these columns, such as {"weights"} for evaluation without optimizer state. Saved columns, dense
  /// parameters and states that the model has not are then skipped, and columns of the model that are not
  /// listed stay as they are.
  std::vector<std::string> columns{};
  /// Warm start: tables of the model may have more rows than were saved. The new ones stay as they are.
  bool allow_more_rows = false;
  /// The newest checkpoint of that step. Without it: the newest checkpoint.
  std::optional<std::uint64_t> step{};
  consistency_level consistency = consistency_level::consistent;
  /// Read and check everything before a row is written, so that a damaged checkpoint leaves the model as it
  /// was. Default: true once a table has been touched, saved or restored in this process.
  std::optional<bool> verify_first{};
  std::uint32_t threads = 0;  ///< that decode at a time; 0: one for each core. Twice as many read
  /// Most bytes for buffers, not counting dense parameters and states, nor the bitmaps of newest_first. One
  /// thread with room for the largest chunk (about 1 MiB, or one row) is the least.
  std::uint64_t memory_limit = std::uint64_t{256} << 20;
  /// Ask the kernel for huge pages under the rows to be written: about three times faster where that memory
  /// was never written before. Default: true in a process that has touched, saved or restored nothing yet.
  std::optional<bool> huge_pages{};
  restore_order order = restore_order::fastest;
};

/// What was restored.
struct restored {
  std::uint64_t step = 0;
  std::uint64_t sequence = 0;
  bool full = false;           ///< the checkpoint is one segment
  std::uint64_t restores = 0;  ///< real restores of this model's history, this one included
  std::uint64_t rows = 0;      ///< row records read, superseded ones included
  std::uint64_t bytes = 0;     ///< read
  double seconds = 0;
  std::string strategy;                                       ///< that wrote it
  std::vector<std::pair<std::string, std::string>> metadata;  ///< yours
  std::vector<error> passed_over;  ///< newer checkpoints that were damaged, and why
  bool complete = true;            ///< deltas go on from here; otherwise the next save is a full one
};

}  // namespace checkrow::inline v0
