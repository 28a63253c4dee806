// Turns rows of a table, or a run of bytes, into chunks of at most 1 MiB of payload.
#pragma once

#include <algorithm>
#include <checkrow/detail/erased.hpp>
#include <checkrow/format/chunk.hpp>
#include <checkrow/format/segment.hpp>
#include <memory>

namespace checkrow::inline v0::detail {

/// The codec of each column: the table's for its weights, exact for all others and for columns of width 1.
inline constexpr std::uint16_t exact_id = 1;
[[nodiscard]] inline codec_choice codec_of_column(std::size_t column, const column_shape& shape,
                                                  codec_choice weights) noexcept {
  return column == 0 && shape.width > 1 ? weights : codec_choice{exact_id, 0};
}

/// A growing buffer whose bytes are not touched before they are used.
class raw_buffer {
 public:
  [[nodiscard]] std::byte* data() const noexcept { return bytes_.get(); }
  /// At least that many bytes; what was in it is lost.
  void reserve(std::size_t bytes) {
    if (bytes <= capacity_) return;
    bytes_.reset();
    bytes_.reset(new std::byte[bytes]);
    capacity_ = bytes;
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
};

/// A finished chunk: its bytes, valid until the next one is encoded, and its footer entry.
struct encoded_chunk {
  std::span<const std::byte> bytes;
  format::footer_entry entry;
  std::size_t payload_bytes = 0;
};

/// One thread's chunk buffer.
class chunk_encoder {
 public:
  chunk_encoder(const any_codecs& codecs, const format::attempt_id& attempt)
      : codecs_(codecs), attempt_(attempt) {}

  /// The most bytes of payload that `rows` rows of these columns may need.
  [[nodiscard]] std::size_t bound(const std::vector<registered_column>& columns, codec_choice weights,
                                  std::uint64_t rows) const {
    std::size_t bytes = 0;
    for (std::size_t c = 0; c < columns.size(); ++c)
      bytes += format::aligned(bound(codec_of_column(c, columns[c].shape, weights), columns[c].shape, rows));
    return bytes;
  }

  /// Rows i to i + n - 1 of a source, n > 0, as one chunk that will stand at `position` in its segment.
  [[nodiscard]] encoded_chunk encode_rows(std::uint32_t table, const std::vector<registered_column>& columns,
                                          codec_choice weights, const row_source& source, std::uint64_t i,
                                          std::uint64_t n, std::uint8_t range_shift, std::uint64_t position) {
    const std::span<const std::uint64_t> ids =
        source.all ? std::span<const std::uint64_t>{} : std::span(source.ids).subspan(i, n);
    const format::index_plan index = source.all ? format::index_plan{} : format::plan_index(ids);
    format::chunk_header header =
        this->header(format::chunk_kind::rows, table, source.id(i), source.id(i + n - 1), n, position);
    header.range_shift = range_shift;
    header.index = index.kind;
    header.index_bytes = index.bytes;
    header.columns.resize(columns.size());
    const std::size_t head = header.head_bytes();
    buffer_.reserve(head + bound(columns, weights, n));
    std::memset(buffer_.data(), 0, head);
    format::write_index(index, ids, buffer_.data() + header.index_offset());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      format::chunk_column& column = header.columns[c];
      column = {codec_of_column(c, columns[c].shape, weights), columns[c].shape, header.payload_bytes, 0};
      std::byte* const to = buffer_.data() + head + column.offset;
      if (column.codec.id == exact_id)
        column.bytes = copy_exactly(columns[c].shape, source.view(c, i), n, to);
      else
        column.bytes = codecs_.encode(column.codec, columns[c].shape, source.view(c, i), n, to);
      header.payload_bytes += pad(to, column.bytes);
    }
    return finish(header);
  }

  /// n elements from `first` of a dense parameter or a state.
  [[nodiscard]] encoded_chunk encode_bytes(format::chunk_kind kind, std::uint32_t item, column_shape element,
                                           std::uint64_t first, std::uint64_t n, const std::byte* bytes,
                                           std::uint64_t position) {
    format::chunk_header header = this->header(kind, item, first, first + n - 1, n, position);
    header.columns = {{{exact_id, 0}, element, 0, n * element.element_bytes}};
    buffer_.reserve(header.head_bytes() + format::aligned(header.columns[0].bytes));
    std::memset(buffer_.data(), 0, header.head_bytes());
    std::byte* const to = buffer_.data() + header.head_bytes();
    std::memcpy(to, bytes, header.columns[0].bytes);
    header.payload_bytes = pad(to, header.columns[0].bytes);
    return finish(header);
  }

 private:
  [[nodiscard]] format::chunk_header header(format::chunk_kind kind, std::uint32_t item, std::uint64_t first,
                                            std::uint64_t last, std::uint64_t rows,
                                            std::uint64_t position) const {
    format::chunk_header out;
    out.kind = kind;
    out.table = item;
    out.first = first;
    out.last = last;
    out.rows = rows;
    out.position = position;
    out.attempt = attempt_;
    return out;
  }

  [[nodiscard]] std::size_t bound(codec_choice codec, const column_shape& shape, std::uint64_t rows) const {
    return codec.id == exact_id ? rows * shape.row_bytes() : codecs_.bound(codec, shape, rows);
  }

  /// What the exact codec does, here because every table needs it, whatever its codec_set holds.
  [[nodiscard]] static std::size_t copy_exactly(const column_shape& shape, row_view from, std::uint64_t n,
                                                std::byte* to) noexcept {
    const std::size_t row_bytes = shape.row_bytes();
    if (from.index == nullptr && from.stride == row_bytes)
      std::memcpy(to, from.base, n * row_bytes);
    else
      for (std::uint64_t i = 0; i < n; ++i) std::memcpy(to + i * row_bytes, from.row(i), row_bytes);
    return n * row_bytes;
  }

  /// Zeroes the padding behind a section; its size with padding.
  static std::size_t pad(std::byte* section, std::size_t bytes) noexcept {
    const std::size_t padded = format::aligned(bytes);
    std::memset(section + bytes, 0, padded - bytes);
    return padded;
  }

  [[nodiscard]] encoded_chunk finish(format::chunk_header& header) const {
    const std::size_t head = header.head_bytes();
    header.payload_hash = format::hash({buffer_.data() + head, header.payload_bytes});
    const std::uint64_t head_hash = format::write_head(header, {buffer_.data(), head});
    const std::size_t bytes = head + header.payload_bytes;
    return {{buffer_.data(), bytes},
            {header.table, header.kind, header.flags, header.columns[0].codec, header.first, header.last,
             header.rows, header.position, bytes, head, head_hash, header.payload_hash},
            header.payload_bytes};
  }

  const any_codecs& codecs_;
  format::attempt_id attempt_;
  raw_buffer buffer_;
};

}  // namespace checkrow::inline v0::detail
