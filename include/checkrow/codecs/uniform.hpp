// Uniform quantization of each row between its own least and greatest element.
#pragma once

#include <checkrow/concepts.hpp>
#include <checkrow/detail/sections.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace checkrow::inline v0 {

/// From the row's min to its max: a step and an offset a row.
struct asymmetric {};
/// From -max|x| to max|x|: a step a row, no offset. Zero is not one of the levels.
struct symmetric {};

/// `Bits` bits per element of float32, half and bfloat16 columns, width >= 2. Encoding a decoded row gives
/// the same bytes again. -0 comes back as +0, except in rows that are kept as they are: those with NaN or
/// infinity, or with all elements below 2^-96 (symmetric: whose step would be below 2^-96 or at 2^32 and
/// above).
template <int Bits, class Range = asymmetric>
struct uniform {
  static_assert(Bits == 2 || Bits == 3 || Bits == 4 || Bits == 8,
                "checkrow: uniform<Bits> comes in 2, 3, 4 and 8 bits per element");
  static_assert(std::is_same_v<Range, asymmetric> || std::is_same_v<Range, symmetric>,
                "checkrow: the range of uniform<Bits, Range> is asymmetric or symmetric");

  static constexpr bool is_symmetric = std::is_same_v<Range, symmetric>;
  static constexpr std::uint16_t id = is_symmetric ? 3 : 2;
  static constexpr std::uint8_t bits = Bits;
  static constexpr std::string_view name = is_symmetric ? "uniform symmetric" : "uniform asymmetric";
  static constexpr std::uint32_t version = 1;

  [[nodiscard]] constexpr bool accepts(const column_shape& shape) const noexcept {
    return detail::quantizable(shape);
  }

  [[nodiscard]] constexpr std::size_t bound(const column_shape& shape, std::size_t n) const noexcept {
    return detail::section_layout(shape, n, Bits).bound();
  }

  /// n < 2^32.
  [[nodiscard]] std::size_t encode(const column_shape& shape, row_view rows, std::size_t n,
                                   std::byte* out) const noexcept {
    return detail::encode_section<Bits, detail::batch_kind::uniform>(shape, rows, n, grid, out, {});
  }

  [[nodiscard]] bool decode(const column_shape& shape, std::span<const std::byte> bytes, std::size_t n,
                            row_span rows) const noexcept {
    return accepts(shape) && detail::decode_section<Bits>(shape, bytes, n, grid, rows);
  }

 private:
  static constexpr detail::row_grid grid =
      is_symmetric ? detail::row_grid::symmetric : detail::row_grid::asymmetric;
};

static_assert(row_codec<uniform<2>>);
static_assert(row_codec<uniform<8, symmetric>>);

}  // namespace checkrow::inline v0
