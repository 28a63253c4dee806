// Row ids of a chunk: strictly ascending 64-bit ids, in the smallest of three encodings.
#pragma once

#include <bit>
#include <checkrow/format/bytes.hpp>
#include <vector>

namespace checkrow::inline v0::format {

/// The index section of a chunk: how its ids are encoded, and in how many bytes.
struct index_plan {
  index_kind kind = index_kind::range;
  std::size_t bytes = 0;
};

[[nodiscard]] inline std::size_t bitmap_index_bytes(std::uint64_t first, std::uint64_t last) noexcept {
  return std::size_t((last - first) / 64 + 1) * 8;
}

/// The smallest encoding of these ids (not empty, ascending, any two neighbours less than 2^32 apart).
[[nodiscard]] inline index_plan plan_index(std::span<const std::uint64_t> ids) noexcept {
  if (ids.back() - ids.front() == ids.size() - 1) return {};
  const std::size_t gaps = (ids.size() - 1) * 4, bitmap = bitmap_index_bytes(ids.front(), ids.back());
  return bitmap <= gaps ? index_plan{index_kind::bitmap, bitmap} : index_plan{index_kind::gaps, gaps};
}

/// Writes plan.bytes bytes to `to`.
inline void write_index(index_plan plan, std::span<const std::uint64_t> ids, std::byte* to) noexcept {
  if (plan.kind == index_kind::bitmap) {
    std::memset(to, 0, plan.bytes);
    for (const std::uint64_t id : ids) {
      const std::uint64_t bit = id - ids.front();
      to[bit / 8] |= std::byte(1u << (bit % 8));
    }
  } else if (plan.kind == index_kind::gaps) {
    for (std::size_t i = 1; i < ids.size(); ++i) store(to + 4 * (i - 1), std::uint32_t(ids[i] - ids[i - 1]));
  }
}

/// The ids of an index section: empty for a range, else exactly `rows` ids from `first` to `last`. False
/// where the untrusted bytes say anything else.
[[nodiscard]] inline bool read_index(index_kind kind, std::span<const std::byte> bytes, std::uint64_t first,
                                     std::uint64_t last, std::uint64_t rows,
                                     std::vector<std::uint64_t>& ids) {
  ids.clear();
  if (rows == 0 || last < first || last - first < rows - 1) return false;
  if (kind == index_kind::range) return bytes.empty() && last - first == rows - 1;
  if (kind == index_kind::gaps) {
    if (bytes.size() / 4 != rows - 1 || bytes.size() % 4 != 0) return false;
    ids.reserve(rows);
    ids.push_back(first);
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      const std::uint64_t gap = load<std::uint32_t>(bytes.data() + i);
      if (gap == 0 || gap > last - ids.back()) return false;
      ids.push_back(ids.back() + gap);
    }
    return ids.back() == last;
  }
  if (kind != index_kind::bitmap || (last - first) / 64 >= bytes.size() / 8 || bytes.size() % 8 != 0 ||
      bytes.size() != bitmap_index_bytes(first, last))
    return false;
  for (std::size_t i = 0; i < bytes.size(); i += 8)
    for (auto word = load<std::uint64_t>(bytes.data() + i); word != 0; word &= word - 1) {
      if (ids.size() == rows) return false;
      ids.push_back(first + i * 8 + unsigned(std::countr_zero(word)));
    }
  return ids.size() == rows && ids.front() == first && ids.back() == last;
}

}  // namespace checkrow::inline v0::format
