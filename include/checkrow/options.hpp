// Values that a checkpointer is made with, beside its policies.
#pragma once

#include <checkrow/version.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace checkrow::inline v0 {

/// Which checkpoints stay: those that any field names, and every segment that they rest on. The rest is
/// collected once a newer one is durable, but for what somebody reads at that moment (see sink's leases).
struct retention {
  std::uint64_t last = 2;   ///< the newest by sequence; at least 1
  std::uint64_t every = 0;  ///< also those whose sequence number it divides; 0: none
  std::uint64_t newer_than =
      0;  ///< also those of the last so many seconds, by the clock of their writer; 0: none
};

/// What a save does that finds the one before unfinished.
enum class overlap_rule : std::uint8_t {
  wait,    ///< until that one is durable, or has failed
  skip,    ///< nothing: its ticket is done at once, and the rows stay dirty for the next one
  cancel,  ///< ends that one: it leaves nothing, and this one has its rows too
};

struct options {
  using setting_tag = void;
  retention keep{};
  std::uint32_t part = 0;  ///< which part of the model this process writes
  overlap_rule overlap = overlap_rule::wait;
  /// Bytes that a save may take beside the model and its bitmaps. What workers (16 MiB each), the sink's
  /// buffers and dense parameters leave of it bounds the copies of rows, whatever the capture's own limit.
  std::uint64_t memory_limit = std::uint64_t{256} << 20;
  unsigned workers = 1;  ///< threads that encode a save behind the trainer
  /// Rows of each table whose hash is kept from save to save, to catch updates of rows that were not touched:
  /// the save then fails with a misuse error that names the row. 0: no check; 1024 costs about 0.25 ms a
  /// save.
  std::uint64_t audit_rows = 0;
  /// A save measures the error of one row in so many, of each column that loses precision: 1 for every row
  /// (several times as long as encoding), 0 for none. The default takes about 1 % of encoding's time.
  std::uint64_t error_sample = 512;
  std::vector<std::pair<std::string, std::string>> metadata{};  ///< yours, kept in every manifest
};

}  // namespace checkrow::inline v0
