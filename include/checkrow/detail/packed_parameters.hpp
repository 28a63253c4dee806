// The parameters of rows, packed: each as few bits as the rows of one section need.
//
// A row has a scale field of scale_bits and an offset field of offset_bits, the scale's the lower, one row
// after the other:
//
//   scale field f > 0   narrow: scale code = lowest_scale + ((f - 1) << scale_shift),
//                       offset = lowest_offset + offset field
//   scale field 0       an exception, of whatever bits a scale needs; the offset field is the row's class
//
// So any row's parameters are read at once, and a zero, wide or raw row widens nothing.
#pragma once

#include <algorithm>
#include <bit>
#include <checkrow/detail/row_arithmetic.hpp>
#include <checkrow/format/bytes.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace checkrow::inline v0::detail {

inline constexpr std::size_t parameter_bytes = 4;

/// The parameters of one row, as the codecs take them and before they are packed.
struct stored_parameters {
  std::uint16_t scale = 0;
  std::int16_t offset = 0;

  [[nodiscard]] row_class kind() const noexcept {
    return scale != 0 ? row_class::narrow : static_cast<row_class>(offset);
  }
};

/// How the rows of one section are packed. On disk: 8 bytes, in order of declaration.
struct parameter_frame {
  std::uint8_t scale_bits = 0;
  std::uint8_t offset_bits = 0;
  std::uint8_t scale_shift = 0;
  std::uint8_t zero = 0;
  std::uint16_t lowest_scale = 0;
  std::int16_t lowest_offset = 0;

  [[nodiscard]] constexpr unsigned row_bits() const noexcept { return unsigned{scale_bits} + offset_bits; }
  /// n * row_bits() must not overflow.
  [[nodiscard]] constexpr std::size_t bytes(std::size_t n) const noexcept { return (n * row_bits() + 7) / 8; }
  /// Could it be one? It is untrusted.
  [[nodiscard]] constexpr bool possible() const noexcept {
    return scale_bits <= 16 && offset_bits <= 16 && scale_bits + scale_shift <= 17 && zero == 0 &&
           (scale_bits == 0 || lowest_scale != 0);
  }
};
static_assert(sizeof(parameter_frame) == 8);

/// The narrowest frame of n rows, {u16 scale code, i16 offset} each.
[[nodiscard]] inline parameter_frame frame_of(const std::byte* rows, std::size_t n) noexcept {
  unsigned scales = 0, greatest = 0, least_less_1 = 0xffff, exception = 0;
  int lowest = std::numeric_limits<int>::max(), highest = std::numeric_limits<int>::min();
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = format::load<stored_parameters>(rows + parameter_bytes * i);
    const bool narrow = row.scale != 0;
    const int offset = row.offset;
    scales |= row.scale;
    greatest = std::max<unsigned>(greatest, row.scale);
    least_less_1 = std::min<unsigned>(least_less_1, (row.scale - 1u) & 0xffff);
    lowest = std::min(lowest, narrow ? offset : lowest);
    highest = std::max(highest, narrow ? offset : highest);
    exception = std::max(exception, narrow ? 0u : static_cast<unsigned>(offset));
  }
  parameter_frame frame;
  unsigned greatest_field = exception;
  if (scales != 0) {
    const auto shift = static_cast<unsigned>(std::countr_zero(scales));
    frame.lowest_scale = static_cast<std::uint16_t>(least_less_1 + 1);
    frame.lowest_offset = static_cast<std::int16_t>(lowest);
    frame.scale_shift = static_cast<std::uint8_t>(shift);
    frame.scale_bits =
        static_cast<std::uint8_t>(std::bit_width(((greatest - least_less_1 - 1) >> shift) + 1));
    greatest_field = std::max(greatest_field, static_cast<unsigned>(highest - lowest));
  }
  frame.offset_bits = static_cast<std::uint8_t>(std::bit_width(greatest_field));
  return frame;
}

/// Packs n rows in place, and returns how.
inline parameter_frame pack_parameters(std::byte* rows, std::size_t n) noexcept {
  const parameter_frame frame = frame_of(rows, n);
  std::byte* to = rows;  // never ahead of the row that is read: at most 32 bits a row
  std::uint64_t waiting = 0;
  unsigned bits = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = format::load<stored_parameters>(rows + parameter_bytes * i);
    const bool narrow = row.scale != 0;
    const unsigned scale = narrow ? ((unsigned{row.scale} - frame.lowest_scale) >> frame.scale_shift) + 1 : 0;
    const auto offset = static_cast<unsigned>(row.offset - (narrow ? frame.lowest_offset : 0));
    waiting |= (scale | std::uint64_t{offset} << frame.scale_bits) << bits;
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

/// Packed parameters. At least 8 bytes, of whatever, have to lie before the end of `packed`.
class parameter_reader {
 public:
  parameter_reader(parameter_frame frame, const std::byte* packed, std::size_t n) noexcept
      : frame_(frame),
        packed_(packed),
        last_load_(static_cast<std::ptrdiff_t>(frame.bytes(n)) - 8),
        scale_mask_((1u << frame.scale_bits) - 1),
        offset_mask_((1u << frame.offset_bits) - 1),
        scale_before_(frame.lowest_scale - (1 << frame.scale_shift)) {}

  [[nodiscard]] stored_parameters operator[](std::size_t row) const noexcept {
    const fields of = load(row);
    return {static_cast<std::uint16_t>(of.scale), static_cast<std::int16_t>(of.offset)};
  }

  /// Rows first to first + n - 1. False if one has parameters that no encoder writes: a scale code beyond
  /// 65535, a narrow row's offset beyond the limit, an exception of a class that does not exist.
  [[nodiscard]] bool read(std::size_t first, std::size_t n, int offset_limit,
                          stored_parameters* to) const noexcept {
    unsigned wrong = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const fields of = load(first + i);
      const int limit = of.narrow ? offset_limit : 1, centre = of.narrow ? 0 : 1;  // classes 0 to 2
      wrong |= static_cast<unsigned>(of.scale > scale_limit) |
               static_cast<unsigned>(of.offset - centre > limit || of.offset - centre < -limit);
      to[i] = {static_cast<std::uint16_t>(of.scale), static_cast<std::int16_t>(of.offset)};
    }
    return wrong == 0;
  }

 private:
  struct fields {
    bool narrow;
    int scale, offset;
  };

  [[nodiscard]] fields load(std::size_t row) const noexcept {
    const std::size_t bit = row * frame_.row_bits();
    // The last rows from 8 bytes that begin earlier: nothing behind the end is touched.
    const std::ptrdiff_t at = std::min(static_cast<std::ptrdiff_t>(bit / 8), last_load_);
    const auto word =
        format::load<std::uint64_t>(packed_ + at) >> ((static_cast<std::ptrdiff_t>(bit) - 8 * at) & 63);
    const auto scale = static_cast<int>(word & scale_mask_);
    const auto offset = static_cast<int>(word >> frame_.scale_bits & offset_mask_);
    const bool narrow = scale != 0;
    return {narrow, narrow ? scale_before_ + (scale << frame_.scale_shift) : 0,
            narrow ? offset + frame_.lowest_offset : offset};
  }

  parameter_frame frame_;
  const std::byte* packed_;
  std::ptrdiff_t last_load_;
  std::uint64_t scale_mask_, offset_mask_;
  int scale_before_;
};

}  // namespace checkrow::inline v0::detail
