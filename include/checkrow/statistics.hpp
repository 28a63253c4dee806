// What a checkpointer has done so far, as one snapshot, and the same as Prometheus text.
#pragma once

#include <checkrow/version.hpp>
#include <cstdint>
#include <string>

namespace checkrow::inline v0 {

/// Everything one would plot. Counters only grow; gauges are as of the moment, or of the last save. Seconds
/// and bytes are sums over committed and failed saves unless they say otherwise.
struct statistics {
  // Saves.
  std::uint64_t saves_started = 0;
  std::uint64_t saves_committed = 0;
  std::uint64_t full_saves = 0;  ///< of those committed
  std::uint64_t saves_failed = 0;
  std::uint64_t saves_cancelled = 0;  ///< by a later one
  std::uint64_t saves_skipped = 0;    ///< because one was still running
  std::uint64_t rows_written = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t blobs_collected = 0;
  double stall_seconds = 0;          ///< inside save(), from no scope open to its return
  double largest_stall_seconds = 0;  ///< of one save
  double wait_seconds = 0;           ///< before that: for an unfinished save and for open scopes
  double encode_seconds = 0;         ///< of all workers together
  double write_seconds = 0;          ///< in the sink
  double total_seconds = 0;          ///< from no scope open to durable
  std::uint64_t aside_rows = 0;      ///< copied by touches that met them while a save ran
  // Gauges.
  bool saving = false;
  std::uint64_t rows_so_far = 0;       ///< of the save that runs, or of the last one
  std::uint64_t bytes_so_far = 0;      ///< the same
  std::uint64_t queued_bytes = 0;      ///< the running save's, in the sink's buffers
  std::uint64_t aside_peak_bytes = 0;  ///< of the last save
  std::uint64_t last_step = 0;         ///< of the last commit
  std::uint64_t last_sequence = 0;
  std::uint64_t last_bytes = 0;
  double last_seconds = 0;        ///< from no scope open to durable
  double last_stall_seconds = 0;  ///< of the last save, whatever became of it
  // Restores.
  std::uint64_t restores = 0;
  std::uint64_t restore_failures = 0;
  std::uint64_t checkpoints_passed_over = 0;  ///< damaged ones
  std::uint64_t bytes_restored = 0;
  double restore_seconds = 0;
};

/// The snapshot in Prometheus's text exposition format, ready to be served or written to a textfile
/// collector. `job` becomes a label of every metric, where it is not empty.
[[nodiscard]] std::string prometheus_text(const statistics& s, const std::string& job = {});

}  // namespace checkrow::inline v0

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/statistics.hpp>
#endif
