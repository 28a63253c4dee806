// Arithmetic on sizes that saturates instead of wrapping around.
#pragma once

#include <checkrow/version.hpp>
#include <cstddef>
#include <limits>

namespace checkrow::inline v0::detail {

/// a * b + c, or the greatest size_t where that overflows.
[[nodiscard]] constexpr std::size_t multiply_add(std::size_t a, std::size_t b, std::size_t c) noexcept {
  std::size_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || __builtin_add_overflow(result, c, &result))
    return std::numeric_limits<std::size_t>::max();
  return result;
}

}  // namespace checkrow::inline v0::detail
