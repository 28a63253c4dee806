// Cuts the rows of a table into aligned ranges of ids, each the rows of one chunk.
#pragma once

#include <algorithm>
#include <checkrow/detail/registered.hpp>
#include <checkrow/format/constants.hpp>
#include <cstring>

namespace checkrow::inline v0::detail {

/// The records of a batch stay in the third cache. (In the second one they would be copied faster, but chunks
/// of so few rows have a tenth of a byte a row more of headers for each halving.)
inline constexpr std::uint64_t batch_bytes = std::uint64_t{8} << 20;

[[nodiscard]] inline std::uint64_t record_bytes(const std::vector<registered_column>& columns) noexcept {
  std::uint64_t record = 0;
  for (const registered_column& column : columns) record += column.shape.row_bytes();
  return record;
}

/// How many rows of these columns make a batch. At most half as many again as the 2^14 of a full range, since
/// of dirty rows an aligned range holds a power of two times their share, more or less.
[[nodiscard]] inline std::uint64_t rows_of_a_batch(const std::vector<registered_column>& columns) noexcept {
  return std::clamp<std::uint64_t>(batch_bytes / std::max<std::uint64_t>(record_bytes(columns), 1), 1,
                                   std::uint64_t{3} << (format::full_range_shift - 1));
}

/// Walks a list of ascending ids in aligned ranges that do not overlap.
struct row_ranges {
  std::uint64_t row = 0;      ///< the first that is not in a range yet
  std::uint64_t covered = 0;  ///< ids below are behind
  std::uint8_t shift = 0;     ///< the last range was 2^shift wide

  /// The rows from `row` on that lie in the largest aligned range with at most `most` of them. `ids` is empty
  /// where row i has id first + i.
  std::uint64_t next(std::span<const std::uint64_t> ids, std::uint64_t rows, unsigned widest,
                     std::uint64_t most, std::uint64_t first = 0) noexcept {
    const std::uint64_t id = ids.empty() ? first + row : ids[row];
    for (shift = std::uint8_t(widest);; --shift) {
      const std::uint64_t start = id >> shift << shift, last = start + ((std::uint64_t{1} << shift) - 1);
      if (start < covered && shift > 0) continue;
      std::uint64_t end = std::min(last - id, rows - row - 1) + row + 1;
      if (!ids.empty())
        end =
            std::uint64_t(std::upper_bound(ids.begin() + std::ptrdiff_t(row), ids.end(), last) - ids.begin());
      if (end - row > most && shift > 0) continue;
      covered = last + 1;
      return end - std::exchange(row, end);
    }
  }
};

/// Rows of `row_bytes`, a multiple of Piece, without a call of memcpy for each.
template <std::size_t Piece>
void copy_in_pieces(row_view from, std::size_t row_bytes, std::uint64_t n, std::byte* to) noexcept {
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::byte* const row = from.row(i);
    for (std::size_t at = 0; at < row_bytes; at += Piece, to += Piece) __builtin_memcpy(to, row + at, Piece);
  }
}

/// Packs n rows of one column.
inline void copy_rows(row_view from, std::size_t row_bytes, std::uint64_t n, std::byte* to) noexcept {
  if (from.index == nullptr && from.stride == row_bytes) {
    if (n != 0) std::memcpy(to, from.base, n * row_bytes);
    return;
  }
  if (row_bytes == 4) return copy_in_pieces<4>(from, 4, n, to);
  if (row_bytes % 32 == 0 && row_bytes <= 1024) return copy_in_pieces<32>(from, row_bytes, n, to);
  for (std::uint64_t i = 0; i < n; ++i) std::memcpy(to + i * row_bytes, from.row(i), row_bytes);
}

/// Packed columns for so many rows, in the batch's own memory.
inline void reserve_columns(row_batch& batch, const std::vector<registered_column>& columns,
                            std::uint64_t rows) {
  std::size_t bytes = 0;
  for (const registered_column& column : columns) bytes += format::aligned(rows * column.shape.row_bytes());
  batch.own_rows.reserve(bytes);
  batch.columns.clear();
  std::byte* at = batch.own_rows.data();
  for (const registered_column& column : columns) {
    batch.columns.push_back({at, column.shape.row_bytes()});
    at += format::aligned(rows * column.shape.row_bytes());
  }
}
[[nodiscard]] inline std::byte* own_column(row_batch& batch, std::size_t column) noexcept {
  return batch.own_rows.data() + (batch.columns[column].base - batch.own_rows.data());
}

}  // namespace checkrow::inline v0::detail
