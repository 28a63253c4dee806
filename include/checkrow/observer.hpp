// What a checkpointer tells about its saves and restores while they happen.
#pragma once

#include <checkrow/error.hpp>
#include <cstdint>
#include <functional>

namespace checkrow::inline v0 {

struct save_figures;

enum class event_kind : unsigned char {
  sealed,       ///< the boundary: no scope is open; seconds: how long save() waited for that
  planned,      ///< the strategy has decided: full says what
  captured,     ///< save() returns next; seconds: the stall since sealed; bytes: staged by then
  encoded,      ///< every row is encoded; rows, bytes: encoded; seconds: spent encoding
  written,      ///< every segment is durable; bytes: written; seconds: spent in the sink
  committed,    ///< the manifest is durable: the checkpoint exists; seconds: since sealed
  failed,       ///< the save or restore failed: why is set. A save's rows are dirty again
  collected,    ///< old blobs were removed; rows: how many blobs; bytes: theirs; why is set where that failed
  passed_over,  ///< restore goes on with an older checkpoint; why says what is wrong with this one
  restored,     ///< rows, bytes: applied; seconds: in all
  skipped,      ///< a save found another one running and did nothing, as options::overlap says
  fell_back,    ///< the sink goes on in a slower way: why says which and where. Nothing has failed
  /// Some 20 times a second at most; seconds: so far. Of a restore: bytes of `total` are verified or applied.
  /// Of a save, whose figures so far are there: rows, of `total` where it is a full one, and bytes written.
  progress,
};

[[nodiscard]] constexpr const char* to_string(event_kind kind) noexcept {
  constexpr const char* names[] = {"sealed",    "planned",   "captured",  "encoded",     "written",
                                   "committed", "failed",    "collected", "passed_over", "restored",
                                   "skipped",   "fell_back", "progress"};
  return names[unsigned(kind)];
}

/// One event. Figures that do not apply are 0; what the pointers point to is only there during the call.
struct event {
  event_kind kind = event_kind::sealed;
  std::uint64_t sequence = 0;
  std::uint64_t step = 0;
  bool full = false;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  const error* why = nullptr;
  const save_figures* figures = nullptr;  ///< of a save that made progress, was committed or has failed
  std::uint64_t total = 0;                ///< of progress
};

/// Passed to a checkpointer beside its policies. Called from the threads that save or restore and from those
/// behind, never from two at once; what it throws is swallowed.
struct observer {
  using setting_tag = void;
  std::function<void(const event&)> call;
};

}  // namespace checkrow::inline v0
