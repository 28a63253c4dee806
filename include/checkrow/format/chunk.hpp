// A chunk: a head (header, column descriptors, row ids) and a payload (one section a column).
#pragma once

#include <checkrow/element.hpp>
#include <checkrow/format/hash.hpp>
#include <checkrow/format/row_ids.hpp>
#include <checkrow/plan.hpp>

namespace checkrow::inline v0::format {

/// One column of a chunk: what encoded it, and where its section lies in the payload.
struct chunk_column {
  codec_choice codec;
  column_shape shape;
  std::uint64_t offset = 0;  ///< from the payload's start, aligned
  std::uint64_t bytes = 0;   ///< without the padding behind it
};

/// A chunk's header, as values. See docs/format.md for the bytes.
struct chunk_header {
  chunk_kind kind = chunk_kind::rows;
  id_space ids = id_space::ordinal;
  index_kind index = index_kind::range;
  std::uint8_t flags = 0;
  std::uint8_t range_shift = no_range;  ///< k: all ids lie in one aligned range of 2^k
  std::uint32_t table = 0;              ///< which of the manifest's tables, dense parameters or states
  std::uint64_t first = 0, last = 0;    ///< smallest and largest id (dense, state: element)
  std::uint64_t rows = 0;
  std::uint64_t index_bytes = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t position = 0;  ///< of this chunk in its segment
  attempt_id attempt{};
  std::uint64_t payload_hash = 0;
  std::vector<chunk_column> columns;

  [[nodiscard]] std::size_t index_offset() const noexcept {
    return aligned(chunk_header_bytes + columns.size() * chunk_column_bytes);
  }
  [[nodiscard]] std::size_t head_bytes() const noexcept { return index_offset() + aligned(index_bytes); }
};

namespace chunk_at {  // offsets in the header
inline constexpr std::size_t magic = 0, header_bytes = 4, version = 6, kind = 8, ids = 9, index = 10,
                             flags = 11, columns = 12, column_bytes = 14, range_shift = 15, compatible = 16,
                             incompatible = 20, table = 24, first = 32, last = 40, rows = 48,
                             index_bytes = 56, payload_bytes = 64, position = 72, attempt = 80,
                             payload_hash = 96, head_hash = 104;
}

/// The hash of a head in place: its own field counts as zero.
[[nodiscard]] inline std::uint64_t hash_head(std::span<std::byte> head) noexcept {
  const auto kept = load<std::uint64_t>(head.data() + chunk_at::head_hash);
  store(head.data() + chunk_at::head_hash, std::uint64_t{0});
  const std::uint64_t found = hash(head);
  store(head.data() + chunk_at::head_hash, kept);
  return found;
}

/// Writes header and column descriptors over the first bytes of `head`, which is zero but for the row ids
/// that stand at index_offset() already. Returns the head's hash, which it has stored.
inline std::uint64_t write_head(const chunk_header& header, std::span<std::byte> head) noexcept {
  std::byte* const to = head.data();
  store(to + chunk_at::magic, chunk_magic);
  store(to + chunk_at::header_bytes, std::uint16_t(chunk_header_bytes));
  store(to + chunk_at::version, version);
  store(to + chunk_at::kind, header.kind);
  store(to + chunk_at::ids, header.ids);
  store(to + chunk_at::index, header.index);
  store(to + chunk_at::flags, header.flags);
  store(to + chunk_at::columns, std::uint16_t(header.columns.size()));
  store(to + chunk_at::column_bytes, std::uint8_t(chunk_column_bytes));
  store(to + chunk_at::range_shift, header.range_shift);
  store(to + chunk_at::table, header.table);
  store(to + chunk_at::first, header.first);
  store(to + chunk_at::last, header.last);
  store(to + chunk_at::rows, header.rows);
  store(to + chunk_at::index_bytes, header.index_bytes);
  store(to + chunk_at::payload_bytes, header.payload_bytes);
  store(to + chunk_at::position, header.position);
  store(to + chunk_at::attempt, header.attempt);
  store(to + chunk_at::payload_hash, header.payload_hash);
  std::byte* at = to + chunk_header_bytes;
  for (const chunk_column& column : header.columns) {
    store(at, column.codec.id);
    store(at + 2, column.codec.bits);
    store(at + 3, column.shape.element);
    store(at + 4, column.shape.element_bytes);
    store(at + 8, column.shape.width);
    store(at + 16, column.offset);
    store(at + 24, column.bytes);
    at += chunk_column_bytes;
  }
  const std::uint64_t head_hash = hash_head(head);
  store(to + chunk_at::head_hash, head_hash);
  return head_hash;
}

/// What a head, whose hash has been checked already, needs that this version does not have; null if nothing.
[[nodiscard]] inline const char* unknown_in_head(std::span<const std::byte> head) noexcept {
  if (head.size() < chunk_header_bytes) return nullptr;
  const std::byte* const from = head.data();
  const auto kind = load<chunk_kind>(from + chunk_at::kind);
  if ((load<std::uint32_t>(from + chunk_at::incompatible) & ~known_incompatible_features) != 0)
    return "a chunk uses an incompatible feature that this version does not know";
  if (load<std::uint16_t>(from + chunk_at::version) != version) return "a chunk has another version";
  if (load<id_space>(from + chunk_at::ids) != id_space::ordinal) return "a chunk has ids of another space";
  if (kind != chunk_kind::rows && kind != chunk_kind::dense && kind != chunk_kind::state)
    return "a chunk is of a kind that this version does not know";
  if (load<index_kind>(from + chunk_at::index) > index_kind::runs)
    return "a chunk's row ids are written in a way that this version does not know";
  if ((load<std::uint8_t>(from + chunk_at::flags) & ~known_flags) != 0)
    return "a chunk has a flag that this version does not know";
  return nullptr;
}

/// Reads a head whose hash has been checked already. Returns null, or what is wrong with it. Sizes are
/// checked against each other and against `head`, so that every offset in the result can be trusted.
[[nodiscard]] inline const char* read_head(std::span<const std::byte> head, chunk_header& header) {
  const std::byte* const from = head.data();
  if (head.size() < chunk_header_bytes) return "the chunk's head is shorter than a header";
  if (load<std::uint32_t>(from + chunk_at::magic) != chunk_magic) return "this is no chunk";
  const std::size_t header_bytes = load<std::uint16_t>(from + chunk_at::header_bytes);
  const std::size_t column_bytes = load<std::uint8_t>(from + chunk_at::column_bytes);
  const std::size_t columns = load<std::uint16_t>(from + chunk_at::columns);
  if (header_bytes < chunk_header_bytes || column_bytes < chunk_column_bytes || columns == 0 ||
      aligned(header_bytes + columns * column_bytes) > head.size())
    return "the chunk's head does not hold its columns";
  header.kind = load<chunk_kind>(from + chunk_at::kind);
  header.ids = load<id_space>(from + chunk_at::ids);
  header.index = load<index_kind>(from + chunk_at::index);
  header.flags = load<std::uint8_t>(from + chunk_at::flags);
  header.range_shift = load<std::uint8_t>(from + chunk_at::range_shift);
  header.table = load<std::uint32_t>(from + chunk_at::table);
  header.first = load<std::uint64_t>(from + chunk_at::first);
  header.last = load<std::uint64_t>(from + chunk_at::last);
  header.rows = load<std::uint64_t>(from + chunk_at::rows);
  header.index_bytes = load<std::uint64_t>(from + chunk_at::index_bytes);
  header.payload_bytes = load<std::uint64_t>(from + chunk_at::payload_bytes);
  header.position = load<std::uint64_t>(from + chunk_at::position);
  header.attempt = load<attempt_id>(from + chunk_at::attempt);
  header.payload_hash = load<std::uint64_t>(from + chunk_at::payload_hash);
  const std::size_t index_offset = aligned(header_bytes + columns * column_bytes);
  if (header.index_bytes > head.size() - index_offset ||
      index_offset + aligned(header.index_bytes) != head.size())
    return "the chunk's row ids do not fill its head";
  if (header.payload_bytes % alignment != 0) return "the chunk's payload is not aligned";
  header.columns.clear();
  std::uint64_t expected = 0;
  for (const std::byte* at = from + header_bytes; header.columns.size() < columns; at += column_bytes) {
    chunk_column column{{load<std::uint16_t>(at), load<std::uint8_t>(at + 2)},
                        {load<element_type>(at + 3), load<std::uint8_t>(at + 4), load<std::uint32_t>(at + 8)},
                        load<std::uint64_t>(at + 16),
                        load<std::uint64_t>(at + 24)};
    if (column.offset != expected || column.bytes > header.payload_bytes - column.offset)
      return "the chunk's column sections do not follow each other";
    expected = column.offset + aligned(column.bytes);
    header.columns.push_back(column);
  }
  if (expected != header.payload_bytes) return "the chunk's column sections do not fill its payload";
  return nullptr;
}

/// Where the row ids lie in a head that read_head() took.
[[nodiscard]] inline std::span<const std::byte> index_of(std::span<const std::byte> head,
                                                         const chunk_header& header) noexcept {
  const std::size_t padded = aligned(header.index_bytes);
  return head.subspan(head.size() - padded, header.index_bytes);
}

}  // namespace checkrow::inline v0::format
