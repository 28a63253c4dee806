// Turns rows of a table, or a run of bytes, into chunks of at most 1 MiB of payload.
#pragma once

#include <algorithm>
#include <checkrow/detail/erased.hpp>
#include <checkrow/detail/row_errors.hpp>
#include <checkrow/detail/row_ranges.hpp>
#include <checkrow/format/chunk.hpp>
#include <checkrow/format/segment.hpp>
#include <limits>
#include <memory>

namespace checkrow::inline v0::detail {

/// The codec of each column: the table's for weights, but exact where they have width 1; any other's own.
[[nodiscard]] inline codec_choice codec_of_column(std::size_t column, const registered_column& of,
                                                  codec_choice weights) noexcept {
  if (column != 0) return of.codec;
  return of.shape.width > 1 ? weights : stored_exactly;
}

/// A finished chunk: its bytes, valid until the next one is encoded, and its footer entry.
struct encoded_chunk {
  std::span<const std::byte> bytes;
  format::footer_entry entry;
  std::vector<error_sums> errors{};  ///< one a column; none where no column loses precision
};

/// One thread's chunk buffer.
class chunk_encoder {
 public:
  /// The error of one row in `error_sample` is measured: 1 for all, 0 for none.
  chunk_encoder(const any_codecs& codecs, const format::attempt_id& attempt, std::uint64_t error_sample)
      : codecs_(codecs), attempt_(attempt), error_sample_(error_sample) {}

  /// The most bytes of payload that `rows` rows of these columns may need.
  [[nodiscard]] std::size_t bound(const std::vector<registered_column>& columns, codec_choice weights,
                                  std::uint64_t rows) const {
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 4;
    std::size_t bytes = 0;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::size_t one = bound(codec_of_column(c, columns[c], weights), columns[c].shape, rows);
      bytes = std::min(bytes + format::aligned(std::min(one, most)), most);  // a codec may have said "any"
    }
    return bytes;
  }

  /// Encodes rows i to i + n - 1 of a batch, n > 0, as one chunk; returns its payload's size. place() makes
  /// it a chunk at a position. Misuse: a codec that passes its own bound.
  [[nodiscard]] result<std::size_t> encode_rows(const std::vector<registered_column>& columns,
                                                codec_choice weights, const row_batch& batch, std::uint64_t i,
                                                std::uint64_t n, std::uint8_t range_shift) {
    const std::span<const std::uint64_t> ids =
        batch.ids.empty() ? std::span<const std::uint64_t>{} : batch.ids.subspan(i, n);
    const format::index_plan index = ids.empty() ? format::index_plan{} : format::plan_index(ids);
    format::chunk_header& header =
        begin(format::chunk_kind::rows, batch.table, batch.id(i), batch.id(i + n - 1), n);
    header.range_shift = range_shift;
    header.flags = batch.aside ? format::chunk_flag_aside : 0;
    header.index = index.kind;
    header.index_bytes = index.bytes;
    header.columns.resize(columns.size());
    const std::size_t head = header.head_bytes();
    buffer_.reserve(head + bound(columns, weights, n));
    std::memset(buffer_.data(), 0, head);
    format::write_index(index, ids, buffer_.data() + header.index_offset());
    errors_.clear();
    for (std::size_t c = 0; c < columns.size(); ++c) {
      format::chunk_column& column = header.columns[c];
      column = {codec_of_column(c, columns[c], weights), columns[c].shape, header.payload_bytes, 0};
      std::byte* const to = buffer_.data() + head + column.offset;
      if (column.codec.id == exact_id)
        column.bytes = copy_exactly(columns[c].shape, batch.view(c, i), n, to);
      else
        column.bytes = codecs_.encode(column.codec, columns[c].shape, batch.view(c, i), n, to);
      if (column.bytes > bound(column.codec, column.shape, n))
        return make_error(error_kind::misuse, {"a codec wrote more than its bound()"},
                          {"codec id ", column.codec.id, ", column ", columns[c].name}, {"mend the codec"});
      if (column.codec.id != exact_id && error_sample_ != 0 && has_error(column.shape)) {
        errors_.resize(columns.size());
        errors_[c] = measure(column, {to, column.bytes}, batch, c, i, n);
      }
      header.payload_bytes += pad(to, column.bytes);
    }
    hash_payload();
    return header.payload_bytes;
  }

  /// Encodes n elements from `first` of a dense parameter or a state.
  void encode_bytes(format::chunk_kind kind, std::uint32_t item, column_shape element, std::uint64_t first,
                    std::uint64_t n, const std::byte* bytes) {
    format::chunk_header& header = begin(kind, item, first, first + n - 1, n);
    errors_.clear();
    header.columns = {{{exact_id, 0}, element, 0, n * element.element_bytes}};
    buffer_.reserve(header.head_bytes() + format::aligned(header.columns[0].bytes));
    std::memset(buffer_.data(), 0, header.head_bytes());
    std::byte* const to = buffer_.data() + header.head_bytes();
    std::memcpy(to, bytes, header.columns[0].bytes);
    header.payload_bytes = pad(to, header.columns[0].bytes);
    hash_payload();
  }

  /// The chunk that was encoded last, as it stands at `position` in its segment.
  [[nodiscard]] encoded_chunk place(std::uint64_t position) {
    header_.position = position;
    const std::size_t head = header_.head_bytes(), bytes = head + header_.payload_bytes;
    const std::uint64_t head_hash = format::write_head(header_, {buffer_.data(), head});
    return {{buffer_.data(), bytes},
            {header_.table, header_.kind, header_.flags, header_.columns[0].codec, header_.first,
             header_.last, header_.rows, position, bytes, head, head_hash, header_.payload_hash},
            std::move(errors_)};
  }

 private:
  /// The errors of rows i, i + error_sample_, ... of a batch, whose rows i to i + n - 1 are in `section`.
  /// Where that is not all of them, they are encoded once more by themselves, which gives the same rows.
  [[nodiscard]] error_sums measure(const format::chunk_column& column, std::span<const std::byte> section,
                                   const row_batch& batch, std::size_t c, std::uint64_t i, std::uint64_t n) {
    const std::size_t row_bytes = column.shape.row_bytes(), count = (n - 1) / error_sample_ + 1;
    row_view rows = batch.view(c, i);
    const bool some = error_sample_ > 1;
    const std::size_t decoded_bytes = format::aligned(count * row_bytes);
    again_.reserve(decoded_bytes + (some ? bound(column.codec, column.shape, count) : 0));
    if (some) {
      sampled_.resize(count);
      for (std::size_t k = 0; k < count; ++k)
        sampled_[k] = rows.index != nullptr ? rows.index[k * error_sample_] : k * error_sample_;
      rows.index = sampled_.data();
      std::byte* const to = again_.data() + decoded_bytes;
      section = {to, codecs_.encode(column.codec, column.shape, rows, count, to)};
    }
    error_sums sums;
    if (!codecs_.decode(column.codec, column.shape, section, count, {again_.data(), row_bytes})) return sums;
    const default_float_environment environment;
    for (std::size_t k = 0; k < count; ++k)
      sums.add(relative_error(column.shape, rows.row(k), again_.data() + k * row_bytes),
               batch.id(i + k * error_sample_));
    return sums;
  }

  format::chunk_header& begin(format::chunk_kind kind, std::uint32_t item, std::uint64_t first,
                              std::uint64_t last, std::uint64_t rows) {
    header_ = {};
    header_.kind = kind;
    header_.table = item;
    header_.first = first;
    header_.last = last;
    header_.rows = rows;
    header_.attempt = attempt_;
    return header_;
  }

  void hash_payload() noexcept {
    header_.payload_hash = format::hash({buffer_.data() + header_.head_bytes(), header_.payload_bytes});
  }

  [[nodiscard]] std::size_t bound(codec_choice codec, const column_shape& shape, std::uint64_t rows) const {
    return codec.id == exact_id ? rows * shape.row_bytes() : codecs_.bound(codec, shape, rows);
  }

  /// What the exact codec does, here because every table needs it, whatever its codec_set holds.
  [[nodiscard]] static std::size_t copy_exactly(const column_shape& shape, row_view from, std::uint64_t n,
                                                std::byte* to) noexcept {
    copy_rows(from, shape.row_bytes(), n, to);
    return n * shape.row_bytes();
  }

  /// Zeroes the padding behind a section; its size with padding.
  static std::size_t pad(std::byte* section, std::size_t bytes) noexcept {
    const std::size_t padded = format::aligned(bytes);
    std::memset(section + bytes, 0, padded - bytes);
    return padded;
  }

  const any_codecs& codecs_;
  format::attempt_id attempt_;
  std::uint64_t error_sample_;
  raw_buffer buffer_, again_;
  std::vector<std::uint64_t> sampled_;
  format::chunk_header header_;
  std::vector<error_sums> errors_;
};

}  // namespace checkrow::inline v0::detail
