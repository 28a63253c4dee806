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
#include <checkrow/detail/parameter_vectors.hpp>
#include <checkrow/detail/row_arithmetic.hpp>
#include <checkrow/format/bytes.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace checkrow::inline v0::detail {

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

/// The packed parameters of n rows. At least 8 bytes, of whatever, have to lie before them. They may be
/// hostile: then so are the results.
class parameter_reader {
 public:
  parameter_reader(parameter_frame frame, const std::byte* packed, std::size_t n) noexcept
      : frame_(frame),
        packed_(packed),
        rows_(n),
        base_(base_of(frame))
#if CHECKROW_PARAMETER_VECTORS
        ,
        plan_(frame.scale_bits, frame.offset_bits, frame.scale_shift, base_)
#endif
  {
    const std::size_t bytes = frame.bytes(n);
    last_load_ = static_cast<std::ptrdiff_t>(bytes) - 8;
    // Eight rows take row_bits() bytes, and the last of them is read from 8 bytes that begin within those.
    if (bytes >= 8) groups_ = std::min(n / 8, (bytes - 8) / frame.row_bits());
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned bit = i * frame.row_bits();
      byte_[i] = bit / 8;
      shift_[i] = bit % 8;
      scale_at_[i] = scale_mask() << shift_[i];
    }
#if CHECKROW_PARAMETER_VECTORS
    if (frame.row_bits() <= unpack_limit && bytes >= unpack_ahead && use_parameter_vectors())
      vector_groups_ = std::min(n / 8, (bytes - unpack_ahead) / frame.row_bits());
#endif
  }

  /// Any one row.
  [[nodiscard]] stored_parameters operator[](std::size_t row) const noexcept {
    return parameters_of(fields(row));
  }

  /// Rows first to first + count - 1; first is a multiple of 8.
  void read(std::size_t first, std::size_t count, stored_parameters* to) const noexcept {
    const std::size_t end = first + count;
    std::size_t row = first;
#if CHECKROW_PARAMETER_VECTORS
    if (const std::size_t groups = vector_groups(first, count); groups != 0) {
      parameter_vectors::unpack_parameters(plan_, group(first), groups, reinterpret_cast<std::byte*>(to));
      row += 8 * groups;
      to += 8 * groups;
    }
#endif
    for (; row + 8 <= end && row / 8 < groups_; row += 8)
      for (unsigned i = 0; i < 8; ++i)
        *to++ = parameters_of(format::load<std::uint64_t>(group(row) + byte_[i]) >> shift_[i]);
    for (; row < end; ++row) *to++ = (*this)[row];
  }

  /// Which of the 64 rows from `first` on, a multiple of 64, are exceptions: bit i for row first + i.
  [[nodiscard]] std::uint64_t exceptions(std::size_t first) const noexcept {
    const std::size_t end = std::min(rows_, first + 64);
    std::uint64_t found = 0;
    std::size_t row = first;
#if CHECKROW_PARAMETER_VECTORS
    if (const std::size_t groups = vector_groups(first, end - first); groups != 0) {
      found = parameter_vectors::unpack_parameters(plan_, group(first), groups, nullptr);
      row += 8 * groups;
    }
#endif
    for (; row + 8 <= end && row / 8 < groups_; row += 8) {
      unsigned some = 0;
      for (unsigned i = 0; i < 8; ++i)
        some |= unsigned{(format::load<std::uint64_t>(group(row) + byte_[i]) & scale_at_[i]) == 0} << i;
      found |= std::uint64_t{some} << (row - first);
    }
    for (; row < end; ++row) found |= std::uint64_t{(fields(row) & scale_mask()) == 0} << (row - first);
    return found;
  }

  /// Are the parameters of all narrow rows in range: scale codes to scale_limit, offsets to offset_limit? The
  /// frame alone nearly always says so.
  [[nodiscard]] bool in_range(int offset_limit) const noexcept {
    const auto scale = [&](std::uint64_t field) noexcept {
      return frame_.lowest_scale + ((field - 1) << frame_.scale_shift);
    };
    const auto offset = [&](std::uint64_t field) noexcept {
      return frame_.lowest_offset + static_cast<std::int64_t>(field);
    };
    if (frame_.scale_bits == 0) return true;
    if (scale(scale_mask()) <= scale_limit && offset(0) >= -offset_limit &&
        offset(offset_mask()) <= offset_limit)
      return true;
    for (std::size_t row = 0; row < rows_; ++row) {
      const std::uint64_t word = fields(row), field = word & scale_mask();
      const std::int64_t m = offset(word >> frame_.scale_bits & offset_mask());
      if (field != 0 && (scale(field) > scale_limit || m < -offset_limit || m > offset_limit)) return false;
    }
    return true;
  }

 private:
  /// What is added to offset field << 16 | scale field << shift of a narrow row.
  [[nodiscard]] static std::uint32_t base_of(parameter_frame frame) noexcept {
    return frame.lowest_scale - (1u << frame.scale_shift) +
           (static_cast<unsigned>(frame.lowest_offset) << 16);
  }
  [[nodiscard]] std::uint64_t scale_mask() const noexcept {
    return (std::uint64_t{1} << frame_.scale_bits) - 1;
  }
  [[nodiscard]] std::uint64_t offset_mask() const noexcept {
    return (std::uint64_t{1} << frame_.offset_bits) - 1;
  }
  [[nodiscard]] const std::byte* group(std::size_t row) const noexcept {
    return packed_ + row / 8 * frame_.row_bits();
  }

#if CHECKROW_PARAMETER_VECTORS
  /// How many of the groups of eight rows that begin there vectors do.
  [[nodiscard]] std::size_t vector_groups(std::size_t first, std::size_t count) const noexcept {
    return first / 8 < vector_groups_ ? std::min(count / 8, vector_groups_ - first / 8) : 0;
  }
#endif

  /// The row's fields in the lowest bits; behind them those of others.
  [[nodiscard]] std::uint64_t fields(std::size_t row) const noexcept {
    const std::size_t bit = row * frame_.row_bits();
    // The last rows from 8 bytes that begin earlier: nothing behind the end is touched.
    const std::ptrdiff_t at = std::min(static_cast<std::ptrdiff_t>(bit / 8), last_load_);
    return format::load<std::uint64_t>(packed_ + at) >> ((static_cast<std::ptrdiff_t>(bit) - 8 * at) & 63);
  }

  /// Scale and offset in one word: offset << 16 | scale, modulo 2^32.
  [[nodiscard]] stored_parameters parameters_of(std::uint64_t word) const noexcept {
    const auto scale = static_cast<std::uint32_t>(word & scale_mask());
    const auto offset = static_cast<std::uint32_t>(word >> frame_.scale_bits & offset_mask()) << 16;
    const std::uint32_t both = offset + (scale != 0 ? base_ + (scale << frame_.scale_shift) : 0);
    return {static_cast<std::uint16_t>(both), static_cast<std::int16_t>(both >> 16)};
  }

  parameter_frame frame_;
  const std::byte* packed_;
  std::size_t rows_, groups_ = 0;  // groups of eight rows that are read without a look at the end
  std::ptrdiff_t last_load_ = 0;
  std::uint32_t base_;
  unsigned byte_[8], shift_[8];
  std::uint64_t scale_at_[8];
#if CHECKROW_PARAMETER_VECTORS
  unpack_plan plan_;
  std::size_t vector_groups_ = 0;
#endif
};

}  // namespace checkrow::inline v0::detail
