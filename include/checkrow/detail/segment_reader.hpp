// Reads a segment and trusts nothing in it: sizes, hashes, attempt and position of everything are checked.
#pragma once

#include <checkrow/detail/blobs.hpp>
#include <checkrow/format/segment.hpp>

namespace checkrow::inline v0::detail {

/// A chunk that passed every check, in the caller's buffer.
struct checked_chunk {
  format::chunk_header header;
  std::span<const std::byte> payload;
  std::vector<std::uint64_t> ids;  ///< empty for a range, which is first to last

  [[nodiscard]] std::uint64_t id(std::uint64_t slot) const noexcept {
    return ids.empty() ? header.first + slot : ids[slot];
  }
  [[nodiscard]] std::span<const std::byte> section(std::size_t column) const noexcept {
    return payload.subspan(header.columns[column].offset, header.columns[column].bytes);
  }
};

/// One segment. Once open, it may be used by several threads.
class segment_reader {
 public:
  segment_reader(std::unique_ptr<any_reader> reader, const format::segment_entry& entry)
      : reader_(std::move(reader)), entry_(&entry) {}

  /// Opens a segment and checks size, header, trailer and footer against the manifest's entry.
  [[nodiscard]] static result<segment_reader> open(any_sink& sink, const format::segment_entry& entry) {
    auto opened = sink.open(entry.name);
    if (!opened) return std::move(opened).error();
    segment_reader out(*std::move(opened), entry);
    if (status sound = out.read_frame(); !sound) return std::move(sound).error();
    return out;
  }

  [[nodiscard]] const format::segment_entry& entry() const noexcept { return *entry_; }
  [[nodiscard]] const std::vector<format::footer_entry>& chunks() const noexcept { return chunks_; }

  /// Bytes of the segment, which the footer says are there.
  [[nodiscard]] status read(std::uint64_t offset, std::span<std::byte> out) const {
    return reader_->read(offset, out);
  }

  /// Checks everything of a chunk, whose bytes are in `whole`, but the contents of its column sections.
  [[nodiscard]] status check(const format::footer_entry& at, std::span<std::byte> whole,
                             checked_chunk& out) const {
    const std::span<std::byte> head = whole.first(at.head_bytes);
    if (format::hash_head(head) != at.head_hash ||
        format::load<std::uint64_t>(head.data() + format::chunk_at::head_hash) != at.head_hash)
      return corrupt(at, "the checksum of a chunk's head does not match");
    if (const char* unknown = format::unknown_in_head(head)) return unsupported(unknown);
    if (const char* wrong = format::read_head(head, out.header)) return corrupt(at, wrong);
    out.payload = whole.subspan(at.head_bytes);
    if (out.header.payload_bytes != out.payload.size())
      return corrupt(at, "a chunk's payload does not fill it");
    if (out.header.payload_hash != at.payload_hash || format::hash(out.payload) != at.payload_hash)
      return corrupt(at, "the checksum of a chunk's payload does not match");
    if (out.header.attempt != entry_->attempt || out.header.position != at.offset)
      return corrupt(at, "a chunk belongs to another segment or place");
    if (out.header.kind != at.kind || out.header.table != at.table || out.header.first != at.first ||
        out.header.last != at.last || out.header.rows != at.rows || out.header.flags != at.flags ||
        out.header.columns[0].codec != at.codec)
      return corrupt(at, "a chunk is not the one that the footer lists");
    if (!format::read_index(out.header.index, format::index_of(head, out.header), at.first, at.last, at.rows,
                            out.ids))
      return corrupt(at, "a chunk's row ids are not what was written");
    return {};
  }

  [[nodiscard]] error corrupt(const format::footer_entry& at, const char* what) const {
    return make_error(error_kind::corrupt, {what}, {entry_->name, ", chunk at ", at.offset},
                      {"restore falls back to the checkpoint before it"});
  }

 private:
  /// Whole, but not for this version: restore must not fall back in silence.
  [[nodiscard]] error unsupported(const char* what) const {
    return make_error(error_kind::unsupported, {what}, {entry_->name},
                      {"read it with a checkrow that knows it"});
  }

  [[nodiscard]] status read_frame() {
    const auto wrong = [&](const char* what) {
      return make_error(error_kind::corrupt, {what}, {entry_->name},
                        {"restore falls back to the checkpoint before it"});
    };
    if (reader_->bytes() != entry_->bytes)
      return wrong("the segment has not the size that the manifest says");
    const auto expected = format::segment_header(entry_->attempt, entry_->part);
    std::array<std::byte, format::segment_header_bytes> header{};
    std::array<std::byte, format::trailer_bytes> trailer{};
    if (entry_->bytes < header.size() + trailer.size()) return wrong("the segment is too short to be one");
    if (status read = reader_->read(0, header); !read) return read;
    if (status read = reader_->read(entry_->bytes - trailer.size(), trailer); !read) return read;
    if (header != expected &&  // or from before the freeze, on which a later delta may rest
        header != format::segment_header(entry_->attempt, entry_->part, true))
      return wrong("the segment's header is not what was written");
    const auto place = format::read_trailer(trailer, entry_->bytes);
    if (!place || place->hash != entry_->footer_hash)
      return wrong("the segment's trailer is not what was written");
    std::vector<std::byte> footer(place->bytes);
    if (status read = reader_->read(place->offset, footer); !read) return read;
    if (format::hash(footer) != entry_->footer_hash)
      return wrong("the checksum of the segment's footer does not match");
    if (format::unknown_in_footer(footer))
      return unsupported("the segment uses an incompatible feature that this version does not know");
    if (const char* what = format::read_footer(footer, entry_->attempt, place->offset, chunks_))
      return wrong(what);
    return {};
  }

  std::unique_ptr<any_reader> reader_;
  const format::segment_entry* entry_;
  std::vector<format::footer_entry> chunks_;
};

}  // namespace checkrow::inline v0::detail
