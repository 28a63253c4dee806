// Two bytes an element, for optimizer columns of any width.
#pragma once

#include <checkrow/concepts.hpp>
#include <checkrow/detail/sizes.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace checkrow::inline v0 {

namespace detail {
/// The nearest bfloat16 of a float's bits, half to even; a finite element stays finite, and NaN stays NaN.
[[nodiscard]] inline std::uint16_t finite_bfloat16(std::uint32_t bits) noexcept {
  const std::uint32_t magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 64u);
  const std::uint32_t rounded = (magnitude + 0x7fffu + (magnitude >> 16 & 1u)) >> 16;
  const bool beyond = magnitude < 0x7f800000u && rounded > 0x7f7fu;
  return static_cast<std::uint16_t>(sign | (beyond ? 0x7f7fu : rounded));
}
}  // namespace detail

/// Float32 elements as bfloat16, in columns of any width: each within 2^-9 (0.2 %) of what it was, over the
/// whole range of float32, whatever its neighbours are. For second moments and accumulators, whose elements
/// differ by orders of magnitude. Encoding a decoded row gives the same bytes again.
struct two_bytes {
  static constexpr std::uint16_t id = 6;
  static constexpr std::uint8_t bits = 16;
  static constexpr std::string_view name = "two bytes";
  static constexpr std::uint32_t version = 1;

  [[nodiscard]] constexpr bool accepts(const column_shape& shape) const noexcept {
    return shape.element == element_type::float32 && shape.element_bytes == 4;
  }

  [[nodiscard]] constexpr std::size_t bound(const column_shape& shape, std::size_t n) const noexcept {
    return detail::multiply_add(n, std::size_t{2} * shape.width, 0);
  }

  [[nodiscard]] std::size_t encode(const column_shape& shape, row_view rows, std::size_t n,
                                   std::byte* out) const noexcept {
    const std::size_t width = shape.width;
    for (std::size_t i = 0; i < n; ++i) {
      const std::byte* const row = rows.row(i);
      for (std::size_t d = 0; d < width; ++d, out += 2) {
        std::uint32_t element;
        std::memcpy(&element, row + 4 * d, 4);
        const std::uint16_t stored = detail::finite_bfloat16(element);
        std::memcpy(out, &stored, 2);
      }
    }
    return n * 2 * width;
  }

  [[nodiscard]] bool decode(const column_shape& shape, std::span<const std::byte> bytes, std::size_t n,
                            row_span rows) const noexcept {
    if (!accepts(shape) || bytes.size() != bound(shape, n)) return false;
    const std::byte* from = bytes.data();
    for (std::size_t i = 0; i < n; ++i) {
      std::byte* const row = rows.row(i);
      for (std::size_t d = 0; d < shape.width; ++d, from += 2) {
        std::uint16_t stored;
        std::memcpy(&stored, from, 2);
        const std::uint32_t element = std::uint32_t{stored} << 16;
        std::memcpy(row + 4 * d, &element, 4);
      }
    }
    return true;
  }
};

static_assert(row_codec<two_bytes>);

}  // namespace checkrow::inline v0
