// Row ids of a chunk: strictly ascending 64-bit ids, in the smallest of four encodings.
#pragma once

#include <bit>
#include <checkrow/format/bytes.hpp>
#include <checkrow/format/rice.hpp>
#include <vector>

namespace checkrow::inline v0::format {

/// The index section of a chunk: how its ids are encoded, and in how many bytes.
struct index_plan {
  index_kind kind = index_kind::range;
  std::size_t bytes = 0;
  unsigned gap_bits = 0, length_bits = 0;  ///< k of gaps, of lengths
  std::uint32_t runs = 0;
};

[[nodiscard]] inline std::size_t bitmap_index_bytes(std::uint64_t first, std::uint64_t last) noexcept {
  return std::size_t((last - first) / 8 + 1);
}

inline constexpr std::size_t gaps_header_bytes = 1, runs_header_bytes = 6;
/// Runs may be long, so that few bytes stand for many ids: more of them than this are not written as runs.
inline constexpr std::uint64_t runs_row_limit = std::uint64_t{1} << 20;

namespace detail {

/// Bytes of Rice codes: ones and zeros of the upper parts, and the lower parts.
[[nodiscard]] inline std::size_t rice_bytes(std::uint64_t upper_bits, std::uint64_t lower_bits) noexcept {
  return std::size_t((upper_bits + 7) / 8 + (lower_bits + 7) / 8);
}

/// Gaps between neighbours, less 1.
[[nodiscard]] inline index_plan plan_gaps(std::span<const std::uint64_t> ids) noexcept {
  const std::uint64_t count = ids.size() - 1;
  const auto best = choose_rice(count, ids.back() - ids.front() - count, [&](unsigned k) noexcept {
    rice_sums sums{};
    for (std::size_t i = 1; i < ids.size(); ++i) {
      const std::uint64_t upper = (ids[i] - ids[i - 1] - 1) >> k;
      sums[0] += upper, sums[1] += upper >> 1, sums[2] += upper >> 2;
    }
    return sums;
  });
  return {index_kind::gaps, gaps_header_bytes + rice_bytes(best.upper + count, count * best.k), best.k};
}

/// Runs of ids: lengths less 1, and the gaps between runs less 2.
[[nodiscard]] inline index_plan plan_runs(std::span<const std::uint64_t> ids, std::uint64_t runs) noexcept {
  const auto length = choose_rice(runs, ids.size() - runs, [&](unsigned k) noexcept {
    rice_sums sums{};
    // A run adds 1 to a sum whenever its length less 1 reaches a multiple of 2^k.
    const std::uint64_t mask = (std::uint64_t{1} << k) - 1;
    for (std::uint64_t i = 1, run = 0; i < ids.size(); ++i) {
      run = ids[i] - ids[i - 1] == 1 ? run + 1 : 0;
      sums[0] += run != 0 && (run & mask) == 0;
      sums[1] += run != 0 && (run & (2 * mask + 1)) == 0;
      sums[2] += run != 0 && (run & (4 * mask + 3)) == 0;
    }
    return sums;
  });
  index_plan plan{index_kind::runs, 0, 0, length.k, std::uint32_t(runs)};
  std::uint64_t upper_bits = length.upper + runs;
  if (runs > 1) {
    const std::uint64_t outside = ids.back() - ids.front() + 1 - ids.size();
    const auto gap = choose_rice(runs - 1, outside - (runs - 1), [&](unsigned k) noexcept {
      rice_sums sums{};
      for (std::size_t i = 1; i < ids.size(); ++i) {
        const std::uint64_t step = ids[i] - ids[i - 1], upper = (step - (step == 1 ? 1 : 2)) >> k;
        sums[0] += upper, sums[1] += upper >> 1, sums[2] += upper >> 2;
      }
      return sums;
    });
    plan.gap_bits = gap.k;
    upper_bits += gap.upper + runs - 1;
  }
  plan.bytes = runs_header_bytes + rice_bytes(upper_bits, runs * length.k + (runs - 1) * plan.gap_bits);
  return plan;
}

inline void write_gaps(index_plan plan, std::span<const std::uint64_t> ids, std::byte* to) noexcept {
  to[0] = std::byte(plan.gap_bits);
  rice_writer writer(to + gaps_header_bytes, to + plan.bytes - ((ids.size() - 1) * plan.gap_bits + 7) / 8);
  for (std::size_t i = 1; i < ids.size(); ++i) writer.add(ids[i] - ids[i - 1] - 1, plan.gap_bits);
  writer.finish();
}

inline void write_runs(index_plan plan, std::span<const std::uint64_t> ids, std::byte* to) noexcept {
  to[0] = std::byte(plan.length_bits);
  to[1] = std::byte(plan.gap_bits);
  store(to + 2, plan.runs);
  const std::uint64_t lower_bits =
      std::uint64_t{plan.runs} * plan.length_bits + (plan.runs - std::uint64_t{1}) * plan.gap_bits;
  rice_writer writer(to + runs_header_bytes, to + plan.bytes - (lower_bits + 7) / 8);
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= ids.size(); ++i) {
    if (i < ids.size() && ids[i] - ids[i - 1] == 1) continue;
    writer.add(i - begin - 1, plan.length_bits);
    if (i < ids.size()) writer.add(ids[i] - ids[i - 1] - 2, plan.gap_bits);
    begin = i;
  }
  writer.finish();
}

[[nodiscard]] inline bool read_gaps(std::span<const std::byte> bytes, std::uint64_t first, std::uint64_t last,
                                    std::uint64_t rows, std::vector<std::uint64_t>& ids) {
  if (bytes.empty() || rows - 1 > bytes.size() * 8) return false;
  const auto k = std::to_integer<unsigned>(bytes[0]);
  if (k > rice_limit) return false;
  const rice_code code(bytes.subspan(gaps_header_bytes), rows - 1, (rows - 1) * k);
  if (!code.valid) return false;
  ids.resize(rows);
  ids[0] = first;
  return read_rice_gaps(code, rows - 1, k, first, ids.data() + 1) && ids.back() == last;
}

[[nodiscard]] inline bool read_runs(std::span<const std::byte> bytes, std::uint64_t first, std::uint64_t last,
                                    std::uint64_t rows, std::vector<std::uint64_t>& ids) {
  if (bytes.size() < runs_header_bytes || rows > runs_row_limit) return false;
  const auto length_bits = std::to_integer<unsigned>(bytes[0]),
             gap_bits = std::to_integer<unsigned>(bytes[1]);
  const std::uint64_t runs = load<std::uint32_t>(bytes.data() + 2);
  if (length_bits > rice_limit || gap_bits > rice_limit || runs == 0 || runs > rows) return false;
  const rice_code code(bytes.subspan(runs_header_bytes), 2 * runs - 1,
                       runs * length_bits + (runs - 1) * gap_bits);
  if (!code.valid) return false;
  ids.resize(rows);
  rice_reader reader(code);
  std::uint64_t* to = ids.data();
  std::uint64_t left = rows, id = first, gap = 0, length = 0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    if (run != 0) {
      if (!reader.next(gap_bits, gap) || last - id < 2 || gap > last - id - 2) return false;
      id += gap + 2;
    }
    if (!reader.next(length_bits, length) || length >= left || length > last - id) return false;
    for (std::uint64_t i = 0; i <= length; ++i) *to++ = id + i;
    left -= length + 1;
    id += length;
  }
  return left == 0 && id == last && reader.at_end();
}

[[nodiscard]] inline bool read_bitmap(std::span<const std::byte> bytes, std::uint64_t first,
                                      std::uint64_t last, std::uint64_t rows,
                                      std::vector<std::uint64_t>& ids) {
  if (bytes.size() != bitmap_index_bytes(first, last)) return false;
  ids.clear();
  for (std::size_t i = 0; i < bytes.size(); i += 8)
    for (std::uint64_t word = load_some(bytes, i); word != 0; word &= word - 1) {
      if (ids.size() == rows) return false;
      ids.push_back(first + i * 8 + unsigned(std::countr_zero(word)));
    }
  return ids.size() == rows && ids.front() == first && ids.back() == last;
}

}  // namespace detail

/// The smallest encoding of these ids (not empty, ascending, any two neighbours at most 2^32 apart). Runs are
/// tried where they are longer than 1.4 ids on average.
[[nodiscard]] inline index_plan plan_index(std::span<const std::uint64_t> ids) noexcept {
  if (ids.back() - ids.front() == ids.size() - 1) return {};
  const index_plan bitmap{index_kind::bitmap, bitmap_index_bytes(ids.front(), ids.back())};
  index_plan best = detail::plan_gaps(ids);
  if (bitmap.bytes <= best.bytes) best = bitmap;
  if (ids.size() > runs_row_limit) return best;
  std::uint64_t runs = 1;
  for (std::size_t i = 1; i < ids.size(); ++i) runs += ids[i] - ids[i - 1] != 1;
  if (runs * 7 > ids.size() * 5) return best;
  const index_plan in_runs = detail::plan_runs(ids, runs);
  return in_runs.bytes < best.bytes ? in_runs : best;
}

/// Writes plan.bytes bytes to `to`.
inline void write_index(index_plan plan, std::span<const std::uint64_t> ids, std::byte* to) noexcept {
  if (plan.bytes == 0) return;
  std::memset(to, 0, plan.bytes);
  if (plan.kind == index_kind::gaps) return detail::write_gaps(plan, ids, to);
  if (plan.kind == index_kind::runs) return detail::write_runs(plan, ids, to);
  for (const std::uint64_t id : ids) {
    const std::uint64_t bit = id - ids.front();
    to[bit / 8] |= std::byte(1u << (bit % 8));
  }
}

/// The ids of an index section: empty for a range, else exactly `rows` ids from `first` to `last`. False, and
/// anything in `ids`, where the untrusted bytes say anything else.
[[nodiscard]] inline bool read_index(index_kind kind, std::span<const std::byte> bytes, std::uint64_t first,
                                     std::uint64_t last, std::uint64_t rows,
                                     std::vector<std::uint64_t>& ids) {
  if (rows == 0 || last < first || last - first < rows - 1) return false;
  if (kind == index_kind::bitmap) return detail::read_bitmap(bytes, first, last, rows, ids);
  if (kind == index_kind::gaps) return detail::read_gaps(bytes, first, last, rows, ids);
  if (kind == index_kind::runs) return detail::read_runs(bytes, first, last, rows, ids);
  ids.clear();
  return kind == index_kind::range && bytes.empty() && last - first == rows - 1;
}

}  // namespace checkrow::inline v0::format
