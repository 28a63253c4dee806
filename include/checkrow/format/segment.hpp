// A segment: a header, chunks, a footer that indexes them, and a trailer that says where the footer is.
#pragma once

#include <checkrow/format/chunk.hpp>
#include <optional>

namespace checkrow::inline v0::format {

/// What the footer tells of one chunk: enough to find any range of any table without reading the chunk.
struct footer_entry {
  std::uint32_t table = 0;
  chunk_kind kind = chunk_kind::rows;
  std::uint8_t flags = 0;
  codec_choice codec;  ///< of the first column
  std::uint64_t first = 0, last = 0, rows = 0;
  std::uint64_t offset = 0, bytes = 0;  ///< of the whole chunk
  std::uint64_t head_bytes = 0, head_hash = 0, payload_hash = 0;
};

/// The first bytes of a segment: known in full from the manifest, so that a flipped bit in them shows.
[[nodiscard]] inline std::array<std::byte, segment_header_bytes> segment_header(
    const attempt_id& attempt, std::uint32_t part, bool is_provisional = provisional) noexcept {
  std::array<std::byte, segment_header_bytes> out{};
  store(out.data(), segment_magic);
  store(out.data() + 8, std::uint16_t(segment_header_bytes));
  store(out.data() + 10, version);
  store(out.data() + 12, std::uint32_t{is_provisional ? 1u : 0u});
  store(out.data() + 16, attempt);
  store(out.data() + 32, part);
  return out;
}

/// Footer and trailer of a segment whose chunks end at `footer_offset`; `footer_hash` is the segment's
/// checksum.
struct segment_end {
  std::vector<std::byte> bytes;
  std::uint64_t footer_hash = 0;
};

[[nodiscard]] inline segment_end write_footer(std::span<const footer_entry> entries,
                                              const attempt_id& attempt, std::uint64_t footer_offset) {
  const std::size_t footer_bytes = footer_header_bytes + entries.size() * footer_entry_bytes;
  segment_end end{std::vector<std::byte>(footer_bytes + trailer_bytes), 0};
  std::byte* at = end.bytes.data();
  store(at, footer_magic);
  store(at + 4, std::uint16_t(footer_header_bytes));
  store(at + 6, std::uint16_t(footer_entry_bytes));
  store(at + 8, std::uint64_t{entries.size()});
  store(at + 24, attempt);  // at + 16: compatible features, at + 20: incompatible ones
  store(at + 40, footer_offset);
  at += footer_header_bytes;
  for (const footer_entry& entry : entries) {
    store(at, entry.table);
    store(at + 4, entry.kind);
    store(at + 5, entry.flags);
    store(at + 6, entry.codec.id);
    store(at + 8, entry.codec.bits);
    const std::uint64_t numbers[] = {entry.first, entry.last,       entry.rows,      entry.offset,
                                     entry.bytes, entry.head_bytes, entry.head_hash, entry.payload_hash};
    std::memcpy(at + 16, numbers, sizeof numbers);
    at += footer_entry_bytes;
  }
  end.footer_hash = hash({end.bytes.data(), footer_bytes});
  store(at, footer_offset);
  store(at + 8, std::uint64_t{footer_bytes});
  store(at + 16, end.footer_hash);
  store(at + 24, segment_end_magic);
  return end;
}

/// Where the footer lies, as the trailer says it; checked against the segment's size.
struct footer_place {
  std::uint64_t offset = 0, bytes = 0, hash = 0;
};

[[nodiscard]] inline std::optional<footer_place> read_trailer(std::span<const std::byte> trailer,
                                                              std::uint64_t segment_bytes) noexcept {
  if (trailer.size() != trailer_bytes ||
      segment_bytes < segment_header_bytes + footer_header_bytes + trailer_bytes ||
      load<std::uint64_t>(trailer.data() + 24) != segment_end_magic)
    return std::nullopt;
  const footer_place place{load<std::uint64_t>(trailer.data()), load<std::uint64_t>(trailer.data() + 8),
                           load<std::uint64_t>(trailer.data() + 16)};
  if (place.offset < segment_header_bytes || place.offset > segment_bytes - trailer_bytes ||
      place.bytes != segment_bytes - trailer_bytes - place.offset)
    return std::nullopt;
  return place;
}

/// Does a footer, whose hash has been checked already, need a feature that this version does not know?
[[nodiscard]] inline bool unknown_in_footer(std::span<const std::byte> footer) noexcept {
  return footer.size() >= footer_header_bytes &&
         (load<std::uint32_t>(footer.data() + 20) & ~known_incompatible_features) != 0;
}

/// Reads a footer whose hash has been checked already. Returns null, or what is wrong with it: chunks have to
/// follow each other from the segment's header to the footer.
[[nodiscard]] inline const char* read_footer(std::span<const std::byte> footer, const attempt_id& attempt,
                                             std::uint64_t footer_offset,
                                             std::vector<footer_entry>& entries) {
  const std::byte* const from = footer.data();
  if (footer.size() < footer_header_bytes || load<std::uint32_t>(from) != footer_magic)
    return "this is no footer";
  const std::size_t header_bytes = load<std::uint16_t>(from + 4), entry_bytes = load<std::uint16_t>(from + 6);
  const auto count = load<std::uint64_t>(from + 8);
  if (header_bytes < footer_header_bytes || entry_bytes < footer_entry_bytes ||
      header_bytes > footer.size() || (footer.size() - header_bytes) % entry_bytes != 0 ||
      (footer.size() - header_bytes) / entry_bytes != count)
    return "the footer does not hold its entries";
  if (load<attempt_id>(from + 24) != attempt) return "the footer belongs to another attempt";
  if (load<std::uint64_t>(from + 40) != footer_offset) return "the footer belongs to another place";
  entries.clear();
  entries.reserve(count);
  std::uint64_t expected = segment_header_bytes;
  for (const std::byte* at = from + header_bytes; at != from + footer.size(); at += entry_bytes) {
    std::uint64_t n[8];
    std::memcpy(n, at + 16, sizeof n);
    footer_entry entry{load<std::uint32_t>(at),
                       load<chunk_kind>(at + 4),
                       load<std::uint8_t>(at + 5),
                       {load<std::uint16_t>(at + 6), load<std::uint8_t>(at + 8)},
                       n[0],
                       n[1],
                       n[2],
                       n[3],
                       n[4],
                       n[5],
                       n[6],
                       n[7]};
    if (entry.offset != expected || entry.bytes > footer_offset - entry.offset ||
        entry.head_bytes > entry.bytes || entry.head_bytes < chunk_header_bytes)
      return "the footer's chunks do not follow each other";
    expected += entry.bytes;
    entries.push_back(entry);
  }
  return expected == footer_offset ? nullptr : "the footer's chunks do not end at the footer";
}

}  // namespace checkrow::inline v0::format
