// What a strategy sees and what it answers: committed history and boundary counts in, a plan out.
#pragma once

#include <checkrow/version.hpp>
#include <cstdint>
#include <span>
#include <vector>

namespace checkrow::inline v0 {

/// Names a codec on disk: its frozen id and the bits per element. Any row_codec converts to it.
struct codec_choice {
  std::uint16_t id = 0;
  std::uint8_t bits = 0;

  constexpr codec_choice() = default;
  constexpr codec_choice(std::uint16_t codec_id, std::uint8_t codec_bits) : id(codec_id), bits(codec_bits) {}
  template <class Codec>
  requires requires {
    Codec::id;
    Codec::bits;
  }
  constexpr codec_choice(const Codec&) : id(Codec::id), bits(Codec::bits) {}

  friend constexpr bool operator==(const codec_choice&, const codec_choice&) = default;
};

/// A row cursor: the rows changed since some durable point, one bit a row, kept by the tracker.
enum class cursor : std::uint8_t {
  last_save = 0,  ///< changed since the last committed save
  base = 1,       ///< changed since the last committed full save
};

/// A set of cursors, a bit each.
using cursor_set = std::uint32_t;
[[nodiscard]] constexpr cursor_set cursors(cursor one) noexcept { return cursor_set{1} << unsigned(one); }
template <class... More>
[[nodiscard]] constexpr cursor_set cursors(cursor one, cursor two, More... more) noexcept {
  return cursors(one) | (cursors(two) | ... | cursors(more));
}
inline constexpr unsigned cursor_count = 2;

/// Which rows a save writes.
enum class row_selection : std::uint8_t {
  all,    ///< every row: a full save, or base
  dirty,  ///< the rows changed since save_plan::since: a delta
};

/// One segment that the newest committed checkpoint rests on.
struct segment_info {
  std::uint64_t sequence = 0;  ///< of the save that wrote it
  std::uint64_t rows = 0;      ///< row records in it, all tables
  std::uint64_t bytes = 0;
  bool full = false;  ///< it holds every row
};

/// The committed past, as the newest checkpoint's manifest tells it: the same on every rank. Empty before the
/// first save, and whenever nothing that was saved can be built upon (a table was added, a restore failed or
/// left columns out): a strategy then has to save every row.
struct history {
  std::vector<segment_info> segments{};  ///< what the newest checkpoint lists, in order of application
  std::uint64_t deltas = 0;              ///< i: deltas committed since the newest full save
  double share_sum = 0;                  ///< S_1 + ... + S_i, each the share of all rows that a delta wrote
  double last_share = 0;                 ///< S_i

  [[nodiscard]] bool empty() const noexcept { return segments.empty(); }
};

/// Counts of one table at the boundary.
struct table_counts {
  std::uint64_t rows = 0;
  std::uint64_t dirty =
      0;  ///< rows touched since the last save() call, counted by the touch that set the bit
};

/// What is known at the boundary itself.
struct boundary {
  std::span<const table_counts> tables{};  ///< in order of name
  std::uint64_t step = 0;
};

/// A strategy's answer. The defaults are a full save.
struct save_plan {
  row_selection rows = row_selection::all;
  cursor since = cursor::base;        ///< for row_selection::dirty; must be one of the strategy's cursors
  std::vector<std::uint32_t> keep{};  ///< indices into history::segments of those that stay, ascending
  cursor_set moves = ~cursor_set{};   ///< the cursors that restart at this save's boundary once it is durable
  std::vector<codec_choice> codecs{};  ///< one per table in order of name; empty: each table's own choice
};

}  // namespace checkrow::inline v0
