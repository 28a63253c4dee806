// What the engines that pack and unpack parameters (parameters_avx2.hpp, parameters_neon.hpp) have in common:
// eight rows are a group, in two halves of four.
#pragma once

#include <checkrow/version.hpp>
#include <cstddef>
#include <cstdint>

namespace checkrow::inline v0::detail {

/// The most bits of a row that they do: with a shift by up to 7 they lie in 4 bytes.
inline constexpr unsigned unpack_limit = 25;
/// Bytes that may be read from the second half of a group on.
inline constexpr std::size_t unpack_ahead = 16;

/// How the fields of eight rows, which take row_bits bytes, are found and made parameters.
struct unpack_plan {
  alignas(32) std::uint8_t bytes[32];  ///< of each row four bytes, from the halves' beginnings
  alignas(32) std::int32_t shifts[8];
  unsigned row_bits, scale_bits, scale_shift;
  std::uint32_t scale_mask, offset_mask, base;

  unpack_plan(unsigned scale_field, unsigned offset_field, unsigned shift, std::uint32_t base_word) noexcept
      : row_bits(scale_field + offset_field),
        scale_bits(scale_field),
        scale_shift(shift),
        scale_mask((1u << scale_field) - 1),
        offset_mask((1u << offset_field) - 1),
        base(base_word) {
    for (unsigned row = 0; row < 8; ++row) {
      const unsigned bit = row * row_bits - (row < 4 ? 0 : half_offset() * 8);
      shifts[row] = static_cast<std::int32_t>(bit % 8);
      for (unsigned i = 0; i < 4; ++i) bytes[4 * row + i] = static_cast<std::uint8_t>(bit / 8 + i);
    }
  }
  [[nodiscard]] unsigned half_offset() const noexcept { return row_bits / 2; }
};

__extension__ typedef unsigned __int128 wide_word;

/// Four pairs of rows, each row_bits * 2 bits, one behind the other. Writes 32 bytes at most.
[[gnu::always_inline]] inline void store_pairs(std::byte* to, std::uint64_t a, std::uint64_t b,
                                               std::uint64_t c, std::uint64_t d, unsigned row_bits) noexcept {
  const unsigned used = row_bits / 2, rest = row_bits % 2 * 4;  // bytes, and bits more, of four rows
  const wide_word first = a | static_cast<wide_word>(b) << (2 * row_bits);
  const wide_word last = c | static_cast<wide_word>(d) << (2 * row_bits);
  const wide_word second = last << rest | (rest != 0 ? first >> (8 * used) : 0);
  __builtin_memcpy(to, &first, sizeof first);
  __builtin_memcpy(to + used, &second, sizeof second);
}

}  // namespace checkrow::inline v0::detail
