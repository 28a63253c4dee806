// Where the parts of a quantized column section lie, and whether untrusted bytes are such a section.
//
//   0           header, 64 bytes: u32 exceptions, u8 scale bits = 16, u8 offset bits = 16, u16 zero,
//               u64 bytes of exception data, 48 zero bytes
//   64          parameters, n * {u16 scale code, i16 offset}; scale code 0: offset is the row's class
//   codes       n * stride bytes, stride = ceil(width * bits / 8); zero and raw rows have a slot of zeros
//   directory   exceptions * {u32 row, u32 offset into the exception data, modulo 2^32}, rows ascending
//   exceptions  in that order: wide {f32 step, f32 low}, raw width * 4 bytes. The section ends here.
//
// Codes and directory start at multiples of 64 from the section's start; the gaps are zero. Little-endian.
#pragma once

#include <algorithm>
#include <checkrow/detail/pack_codes.hpp>
#include <checkrow/detail/row_arithmetic.hpp>
#include <checkrow/detail/sizes.hpp>
#include <checkrow/element.hpp>
#include <checkrow/format/bytes.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace checkrow::inline v0::detail {

/// Asymmetric rows have an offset, symmetric rows a scale only.
enum class row_grid : std::uint8_t { asymmetric, symmetric };

inline constexpr std::size_t parameter_bytes = 4;
inline constexpr std::size_t directory_entry_bytes = 8;
inline constexpr std::size_t wide_bytes = 8;

/// Rounds up to a multiple of 64, or to the greatest size_t.
[[nodiscard]] constexpr std::size_t align_section(std::size_t bytes) noexcept {
  const std::size_t up = multiply_add(1, bytes, format::alignment - 1);
  return up == std::numeric_limits<std::size_t>::max() ? up : up / format::alignment * format::alignment;
}

/// Offsets from the section's start. Sizes that overflow are the greatest size_t.
struct section_layout {
  std::size_t width;
  std::size_t rows;
  std::size_t stride;
  std::size_t codes;
  std::size_t directory;

  static constexpr std::size_t parameters = 64;

  constexpr section_layout(const column_shape& shape, std::size_t n, int bits) noexcept
      : width(shape.width),
        rows(n),
        stride(packed_bytes(shape.width, bits)),
        codes(align_section(multiply_add(n, parameter_bytes, parameters))),
        directory(align_section(multiply_add(n, stride, codes))) {}

  [[nodiscard]] constexpr std::size_t raw_bytes() const noexcept { return 4 * width; }
  /// All rows raw.
  [[nodiscard]] constexpr std::size_t bound() const noexcept {
    return multiply_add(rows, directory_entry_bytes + std::max(wide_bytes, raw_bytes()), directory);
  }
};

/// The parameters of one row as they are stored.
struct stored_parameters {
  std::uint16_t scale = 0;
  std::int16_t offset = 0;

  [[nodiscard]] row_class kind() const noexcept {
    return scale != 0 ? row_class::narrow : static_cast<row_class>(offset);
  }
};

[[nodiscard]] inline stored_parameters load_parameters(const std::byte* section, std::size_t row) noexcept {
  return format::load<stored_parameters>(section + section_layout::parameters + parameter_bytes * row);
}

[[nodiscard]] inline bool all_zero(const std::byte* from, const std::byte* to) noexcept {
  return std::all_of(from, to, [](std::byte b) { return b == std::byte{0}; });
}

/// Could these parameters have been written?
[[nodiscard]] inline bool possible(stored_parameters stored, row_grid grid, int bits) noexcept {
  const bool symmetric = grid == row_grid::symmetric;
  if (stored.scale == 0)
    return stored.offset == 0 || stored.offset == 2 || (stored.offset == 1 && !symmetric);
  const int limit = symmetric ? 0 : offset_limit(bits);
  return stored.offset >= -limit && stored.offset <= limit;
}

CHECKROW_CANONICAL_BEGIN

/// Are all of these parameters those of narrow rows, and possible? Quickly.
[[nodiscard, gnu::noinline]] inline bool all_narrow(const std::byte* parameters, std::size_t count,
                                                    int limit) noexcept {
  unsigned bad = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t both;
    __builtin_memcpy(&both, parameters + parameter_bytes * i, 4);
    const std::int32_t offset = static_cast<std::int32_t>(both) >> 16;
    bad |= ((both & 0xffff) == 0 ? 1u : 0u) | (offset > limit ? 1u : 0u) | (offset < -limit ? 1u : 0u);
  }
  return bad == 0;
}

CHECKROW_CANONICAL_END

/// Is the row's slot zero where it has to be: all of it, or the bits after the last code?
[[nodiscard]] inline bool slot_is_clean(const std::byte* slot, const section_layout& at, row_class kind,
                                        int bits) noexcept {
  if (kind == row_class::zero || kind == row_class::raw) return all_zero(slot, slot + at.stride);
  const std::size_t used = at.width % 8 * static_cast<std::size_t>(bits) % 8;
  return used == 0 || (std::to_integer<unsigned>(slot[at.stride - 1]) >> used) == 0;
}

/// Is this a whole section of that layout, byte for byte as encode could have written it? Only the values of
/// codes and of wide and raw elements are left open. `bytes` is untrusted.
[[nodiscard]] inline bool section_is_valid(std::span<const std::byte> bytes, const section_layout& at,
                                           row_grid grid, int bits) noexcept {
  if (at.directory > bytes.size()) return false;
  const std::byte* section = bytes.data();
  const std::size_t exceptions = format::load<std::uint32_t>(section);
  const auto data_bytes = format::load<std::uint64_t>(section + 8);
  const std::size_t rest = bytes.size() - at.directory;
  if (exceptions > rest / directory_entry_bytes) return false;
  if (data_bytes != rest - exceptions * directory_entry_bytes) return false;
  if (format::load<std::uint32_t>(section + 4) != 0x1010) return false;
  if (!all_zero(section + 16, section + section_layout::parameters)) return false;
  if (!all_zero(section + section_layout::parameters + at.rows * parameter_bytes, section + at.codes))
    return false;
  if (!all_zero(section + at.codes + at.rows * at.stride, section + at.directory)) return false;

  std::size_t seen = 0;
  std::uint64_t offset = 0;
  constexpr std::size_t group = 64;
  const bool whole_bytes = at.width * static_cast<std::size_t>(bits) % 8 == 0;
  const int limit = grid == row_grid::symmetric ? 0 : offset_limit(bits);
  for (std::size_t row = 0; row < at.rows; ++row) {
    const std::size_t ahead = std::min(group, at.rows - row);
    if (row % group == 0 && whole_bytes &&
        all_narrow(section + section_layout::parameters + row * parameter_bytes, ahead, limit)) {
      row += ahead - 1;
      continue;
    }
    const stored_parameters stored = load_parameters(section, row);
    if (!possible(stored, grid, bits)) return false;
    const row_class kind = stored.kind();
    if (!slot_is_clean(section + at.codes + row * at.stride, at, kind, bits)) return false;
    if (kind != row_class::wide && kind != row_class::raw) continue;
    if (seen == exceptions) return false;
    const std::byte* entry = section + at.directory + seen++ * directory_entry_bytes;
    if (format::load<std::uint32_t>(entry) != row) return false;
    if (format::load<std::uint32_t>(entry + 4) != static_cast<std::uint32_t>(offset)) return false;
    offset += kind == row_class::wide ? wide_bytes : at.raw_bytes();
  }
  return seen == exceptions && offset == data_bytes;
}

}  // namespace checkrow::inline v0::detail
