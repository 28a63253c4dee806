// Packs the parameters of a section's rows, see packed_parameters.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <checkrow/detail/packed_parameters.hpp>
#include <checkrow/detail/parameter_vectors.hpp>
#include <checkrow/detail/section_layout.hpp>
#include <checkrow/format/bytes.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace checkrow::inline v0::detail {

/// Least and greatest of what a frame depends on.
struct parameter_range {
  int least_scale = std::numeric_limits<int>::max(), greatest_scale = 0;  ///< of narrow rows
  int least_offset = std::numeric_limits<int>::max(), greatest_offset = std::numeric_limits<int>::min();
  int greatest_class = 0;
  unsigned scales = 0;  ///< all scale codes, or-ed

  void add(stored_parameters row) noexcept {
    const bool narrow = row.scale != 0;
    const int scale = row.scale, offset = row.offset;
    scales |= row.scale;
    greatest_scale = std::max(greatest_scale, scale);
    least_scale = std::min(least_scale, narrow ? scale : least_scale);
    least_offset = std::min(least_offset, narrow ? offset : least_offset);
    greatest_offset = std::max(greatest_offset, narrow ? offset : greatest_offset);
    greatest_class = std::max(greatest_class, narrow ? 0 : offset);
  }
};

/// Adds 64 rows if all are narrow; false, and nothing added, if not.
inline bool add_narrow_rows(const std::byte* rows, parameter_range& range) noexcept {
  using halves = std::int16_t __attribute__((vector_size(16)));          // scale, offset, scale, offset, ...
  const halves flip = {-0x8000, 0, -0x8000, 0, -0x8000, 0, -0x8000, 0};  // scales in signed order
  halves all = format::load<halves>(rows), least = all ^ flip, greatest = least;
  for (std::size_t at = sizeof all; at < 64 * parameter_bytes; at += sizeof all) {
    const halves some = format::load<halves>(rows + at), ordered = some ^ flip;
    all |= some;
    least = ordered < least ? ordered : least;
    greatest = ordered > greatest ? ordered : greatest;
  }
  if (std::min({least[0], least[2], least[4], least[6]}) == -0x8000) return false;
  for (int i = 0; i < 8; i += 2) {
    range.scales |= static_cast<std::uint16_t>(all[i]);
    range.least_scale = std::min(range.least_scale, least[i] + 0x8000);
    range.greatest_scale = std::max(range.greatest_scale, greatest[i] + 0x8000);
    range.least_offset = std::min<int>(range.least_offset, least[i + 1]);
    range.greatest_offset = std::max<int>(range.greatest_offset, greatest[i + 1]);
  }
  return true;
}

/// The narrowest frame of n rows, {u16 scale code, i16 offset} each.
[[nodiscard]] inline parameter_frame frame_of(const std::byte* rows, std::size_t n) noexcept {
  parameter_range range;
  for (std::size_t i = 0; i < n;) {
    if (n - i >= 64 && add_narrow_rows(rows + parameter_bytes * i, range)) {
      i += 64;
      continue;
    }
    for (const std::size_t end = std::min(n, i + 64); i < end; ++i)
      range.add(format::load<stored_parameters>(rows + parameter_bytes * i));
  }
  parameter_frame frame;
  auto greatest_field = static_cast<unsigned>(range.greatest_class);
  if (range.scales != 0) {
    const int shift = std::countr_zero(range.scales);
    const auto steps = static_cast<unsigned>((range.greatest_scale - range.least_scale) >> shift);
    frame.lowest_scale = static_cast<std::uint16_t>(range.least_scale);
    frame.lowest_offset = static_cast<std::int16_t>(range.least_offset);
    frame.scale_shift = static_cast<std::uint8_t>(shift);
    frame.scale_bits = static_cast<std::uint8_t>(std::bit_width(steps + 1));
    greatest_field =
        std::max(greatest_field, static_cast<unsigned>(range.greatest_offset - range.least_offset));
  }
  frame.offset_bits = static_cast<std::uint8_t>(std::bit_width(greatest_field));
  return frame;
}

/// Packs n rows in place, and returns how.
inline parameter_frame pack_parameters(std::byte* rows, std::size_t n) noexcept {
  const parameter_frame frame = frame_of(rows, n);
  const std::uint32_t lowest = frame.lowest_scale | static_cast<std::uint32_t>(frame.lowest_offset) << 16;
  std::byte* to = rows;  // never ahead of the row that is read: at most 32 bits a row
  std::uint64_t waiting = 0;
  unsigned bits = 0;
  std::size_t i = 0;
#if CHECKROW_PARAMETER_VECTORS
  if (frame.row_bits() <= unpack_limit && use_parameter_vectors()) {
    parameter_vectors::pack_groups(rows, n / 8, frame.row_bits(), frame.scale_bits, frame.scale_shift,
                                   lowest);
    i = n / 8 * 8;
    to += n / 8 * frame.row_bits();
  }
#endif
  for (; i < n; ++i) {
    const auto both = format::load<std::uint32_t>(rows + parameter_bytes * i);  // offset << 16 | scale code
    const std::uint32_t narrow = (both & 0xffff) != 0 ? 1 : 0;
    const std::uint32_t above = both - (narrow != 0 ? lowest : 0);
    const std::uint32_t scale = ((above & 0xffff) >> frame.scale_shift) + narrow;
    waiting |= (scale | std::uint64_t{above >> 16} << frame.scale_bits) << bits;
    bits += frame.row_bits();
    if (bits < 32) continue;
    format::store(to, static_cast<std::uint32_t>(waiting));
    to += 4;
    waiting >>= 32;
    bits -= 32;
  }
  for (; bits > 0; bits -= std::min(bits, 8u), waiting >>= 8) *to++ = static_cast<std::byte>(waiting & 0xff);
  return frame;
}

}  // namespace checkrow::inline v0::detail
