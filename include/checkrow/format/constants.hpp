// The numbers on disk, which are frozen: docs/format.md says where each stands, and what may be added.
#pragma once

#include <array>
#include <checkrow/version.hpp>
#include <cstddef>
#include <cstdint>

namespace checkrow::inline v0::format {

inline constexpr std::uint16_t version = 1;
/// Said in every manifest and segment; true until the format was frozen.
inline constexpr bool provisional = false;

inline constexpr std::uint32_t chunk_magic = 0x4b435243;                // "CRCK"
inline constexpr std::uint32_t footer_magic = 0x54465243;               // "CRFT"
inline constexpr std::uint64_t segment_magic = 0x574f524b43454843;      // "CHECKROW"
inline constexpr std::uint64_t segment_end_magic = 0x444e454745535243;  // "CRSEGEND"

/// Every section starts at a multiple of this within its chunk, and every chunk within its segment.
inline constexpr std::size_t alignment = 64;

inline constexpr std::size_t chunk_header_bytes = 128;
inline constexpr std::size_t chunk_column_bytes = 32;
inline constexpr std::size_t segment_header_bytes = 64;
inline constexpr std::size_t footer_header_bytes = 64;
inline constexpr std::size_t footer_entry_bytes = 80;
inline constexpr std::size_t trailer_bytes = 32;

/// A chunk's payload is at most this, or one row.
inline constexpr std::size_t chunk_payload_limit = std::size_t{1} << 20;
/// The rows of a chunk where all rows are written: 2^14 at most.
inline constexpr unsigned full_range_shift = 14;
/// A chunk of rows covers an aligned range of at most 2^32, so that a gap between two ids fits 32 bits.
inline constexpr unsigned largest_range_shift = 32;
/// range_shift of a chunk that keeps to no aligned range.
inline constexpr std::uint8_t no_range = 0xff;

enum class chunk_kind : std::uint8_t {
  rows = 1,
  erased = 2,  ///< reserved: keys that were removed
  dense = 3,
  state = 4,
  refinement = 5,  ///< reserved
};

enum class id_space : std::uint8_t {
  ordinal = 0,
  key = 1,  ///< reserved: 64-bit keys
};

enum class index_kind : std::uint8_t {
  range = 0,   ///< first to last, all of them
  bitmap = 1,  ///< a bit for each id from first to last
  gaps = 2,    ///< Rice codes of id - previous id - 1
  runs = 3,    ///< Rice codes of runs of ids and of the gaps between them
};

inline constexpr std::uint8_t chunk_flag_aside = 1;  ///< rows copied aside, within other chunks' ranges
inline constexpr std::uint8_t known_flags = chunk_flag_aside;

/// Feature bits that this version understands. Unknown compatible ones are skipped, incompatible ones
/// refused.
inline constexpr std::uint32_t known_incompatible_features = 0;

/// 128 random bits that name one attempt at one save.
using attempt_id = std::array<std::uint8_t, 16>;

[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace checkrow::inline v0::format
