// Where the parts of a quantized column section lie.
//
// clang-format off
//   0           header, 64 bytes: u32 exceptions, u32 zero, u64 bytes of exception data, parameter_frame, 40 zero bytes
//   64          codes, n * stride bytes, stride = ceil(width * bits / 8); zero and raw rows have a slot of zeros
//   parameters  packed: see packed_parameters.hpp
//   directory   exceptions * {u32 row, u32 offset into the exception data, modulo 2^32}, rows ascending
//   exceptions  in that order: wide {f32 step, f32 low}, raw width * element_bytes. The section ends here.
// clang-format on
//
// Parameters and directory start at multiples of 64 from the section's start; the gaps are zero.
// Little-endian.
#pragma once

#include <checkrow/detail/pack_codes.hpp>
#include <checkrow/detail/sizes.hpp>
#include <checkrow/element.hpp>
#include <checkrow/format/constants.hpp>
#include <cstddef>
#include <limits>

namespace checkrow::inline v0::detail {

inline constexpr std::size_t parameter_bytes = 4;  ///< of a row, before they are packed
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
  std::size_t element_bytes;  ///< 4, or 2: half and bfloat16
  std::size_t rows;
  std::size_t stride;
  std::size_t parameters;
  std::size_t directory;  ///< behind parameters of 4 bytes a row, until pack() says how they are packed

  static constexpr std::size_t frame = 16, frame_end = 24;
  static constexpr std::size_t codes = 64;

  constexpr section_layout(const column_shape& shape, std::size_t n, int bits) noexcept
      : width(shape.width),
        element_bytes(shape.element_bytes),
        rows(n),
        stride(packed_bytes(shape.width, bits)),
        parameters(align_section(multiply_add(n, stride, codes))),
        directory(align_section(multiply_add(n, parameter_bytes, parameters))) {}

  /// The parameters take so many bytes; n rows of codes have to be in memory.
  constexpr void pack(std::size_t packed) noexcept { directory = align_section(parameters + packed); }

  [[nodiscard]] constexpr std::size_t raw_bytes() const noexcept { return element_bytes * width; }
  /// Behind the greatest section, while one is written: a row as floats.
  [[nodiscard]] constexpr std::size_t scratch() const noexcept { return element_bytes == 2 ? 4 * width : 0; }
  /// All rows raw.
  [[nodiscard]] constexpr std::size_t bound() const noexcept {
    const std::size_t exception = raw_bytes() > wide_bytes ? raw_bytes() : wide_bytes;
    return multiply_add(rows, directory_entry_bytes + exception, multiply_add(1, directory, scratch()));
  }
};

}  // namespace checkrow::inline v0::detail
