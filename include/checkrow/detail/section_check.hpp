// Whether untrusted bytes are a quantized column section, see section_layout.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <checkrow/detail/packed_parameters.hpp>
#include <checkrow/detail/row_arithmetic.hpp>
#include <checkrow/detail/section_layout.hpp>
#include <checkrow/format/bytes.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace checkrow::inline v0::detail {

/// The packed parameters of a section whose frame is possible().
[[nodiscard]] inline parameter_reader parameters_in(const std::byte* section,
                                                    const section_layout& at) noexcept {
  return {format::load<parameter_frame>(section + section_layout::frame), section + at.parameters, at.rows};
}

[[nodiscard]] inline bool all_zero(const std::byte* from, const std::byte* to) noexcept {
  return std::all_of(from, to, [](std::byte b) { return b == std::byte{0}; });
}

/// Is the row's slot zero where it has to be: all of it, or the bits after the last code?
[[nodiscard]] inline bool slot_is_clean(const std::byte* slot, const section_layout& at, row_class kind,
                                        int bits) noexcept {
  if (kind == row_class::zero || kind == row_class::raw) return all_zero(slot, slot + at.stride);
  const std::size_t used = at.width % 8 * static_cast<std::size_t>(bits) % 8;
  return used == 0 || (std::to_integer<unsigned>(slot[at.stride - 1]) >> used) == 0;
}

/// Is this a whole section of that layout, as encode could have written it? Only the values of codes, of
/// parameters and of wide and raw elements are left open. `bytes` is untrusted; `at` gets its directory.
[[nodiscard]] inline bool section_is_valid(std::span<const std::byte> bytes, section_layout& at,
                                           row_grid grid, int bits) noexcept {
  if (at.parameters > bytes.size()) return false;
  const std::byte* section = bytes.data();
  const auto frame = format::load<parameter_frame>(section + section_layout::frame);
  if (!frame.possible()) return false;
  at.pack(frame.bytes(at.rows));
  if (at.directory > bytes.size()) return false;
  const std::size_t exceptions = format::load<std::uint32_t>(section);
  const auto data_bytes = format::load<std::uint64_t>(section + 8);
  const std::size_t rest = bytes.size() - at.directory;
  if (exceptions > rest / directory_entry_bytes) return false;
  if (data_bytes != rest - exceptions * directory_entry_bytes) return false;
  if (!all_zero(section + 4, section + 8)) return false;
  if (!all_zero(section + section_layout::frame_end, section + section_layout::codes)) return false;
  if (!all_zero(section + section_layout::codes + at.rows * at.stride, section + at.parameters)) return false;
  const std::size_t last_bits = at.rows * frame.row_bits() % 8, end = at.parameters + frame.bytes(at.rows);
  if (last_bits != 0 && std::to_integer<unsigned>(section[end - 1]) >> last_bits != 0) return false;
  if (!all_zero(section + end, section + at.directory)) return false;

  const parameter_reader parameters = parameters_in(section, at);
  const bool symmetric = grid == row_grid::symmetric, small = at.element_bytes == 2;
  if (!parameters.in_range(symmetric ? 0 : small ? 32767 : offset_limit(bits))) return false;
  if (at.width * static_cast<std::size_t>(bits) % 8 != 0)
    for (std::size_t row = 0; row < at.rows; ++row)
      if (!slot_is_clean(section + section_layout::codes + row * at.stride, at, row_class::narrow, bits))
        return false;
  std::size_t seen = 0;
  std::uint64_t offset = 0;
  for (std::size_t first = 0; first < at.rows; first += 64)
    for (std::uint64_t left = parameters.exceptions(first); left != 0; left &= left - 1) {
      const std::size_t row = first + static_cast<std::size_t>(std::countr_zero(left));
      const stored_parameters stored = parameters[row];
      const row_class kind = stored.kind();
      if (stored.offset != static_cast<int>(kind)) return false;
      if (kind == row_class::zero || kind == row_class::raw) {
        if (!slot_is_clean(section + section_layout::codes + row * at.stride, at, kind, bits)) return false;
        if (kind == row_class::zero) continue;
      } else if (kind != row_class::wide || symmetric || small) {
        return false;
      }
      if (seen == exceptions) return false;
      const std::byte* entry = section + at.directory + seen++ * directory_entry_bytes;
      if (format::load<std::uint32_t>(entry) != row) return false;
      if (format::load<std::uint32_t>(entry + 4) != static_cast<std::uint32_t>(offset)) return false;
      offset += kind == row_class::wide ? wide_bytes : at.raw_bytes();
    }
  return seen == exceptions && offset == data_bytes;
}

}  // namespace checkrow::inline v0::detail
