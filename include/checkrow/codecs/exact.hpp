// The exact codec: every row as it is. Any element type, any width.
#pragma once

#include <checkrow/concepts.hpp>
#include <checkrow/detail/sizes.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace checkrow::inline v0 {

/// Section: n * row_bytes, rows in order.
struct exact {
  static constexpr std::uint16_t id = 1;
  static constexpr std::uint8_t bits = 0;
  static constexpr std::string_view name = "exact";
  static constexpr std::uint32_t version = 1;

  [[nodiscard]] constexpr bool accepts(const column_shape&) const noexcept { return true; }

  [[nodiscard]] constexpr std::size_t bound(const column_shape& shape, std::size_t n) const noexcept {
    return detail::multiply_add(n, shape.row_bytes(), 0);
  }

  [[nodiscard]] std::size_t encode(const column_shape& shape, row_view rows, std::size_t n,
                                   std::byte* out) const noexcept {
    const std::size_t row_bytes = shape.row_bytes();
    if (n == 0 || row_bytes == 0) return 0;
    if (rows.index == nullptr && rows.stride == row_bytes) {
      std::memcpy(out, rows.base, n * row_bytes);
      return n * row_bytes;
    }
    for (std::size_t i = 0; i < n; ++i) std::memcpy(out + i * row_bytes, rows.row(i), row_bytes);
    return n * row_bytes;
  }

  [[nodiscard]] bool decode(const column_shape& shape, std::span<const std::byte> bytes, std::size_t n,
                            row_span rows) const noexcept {
    const std::size_t row_bytes = shape.row_bytes();
    if (bytes.size() != bound(shape, n)) return false;
    if (n == 0 || row_bytes == 0) return true;
    if (rows.index == nullptr && rows.stride == row_bytes) {
      std::memcpy(rows.base, bytes.data(), n * row_bytes);
      return true;
    }
    for (std::size_t i = 0; i < n; ++i) std::memcpy(rows.row(i), bytes.data() + i * row_bytes, row_bytes);
    return true;
  }
};

static_assert(row_codec<exact>);

}  // namespace checkrow::inline v0
