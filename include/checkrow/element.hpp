// Element types of columns, and how a codec sees rows: a shape, and where each row lies.
#pragma once

#include <checkrow/version.hpp>
#include <cstddef>
#include <cstdint>

namespace checkrow::inline v0 {

/// The element types that the format names. Codes are on disk and frozen; a user's own start at 0x80.
enum class element_type : std::uint8_t {
  float32 = 1,
  float16 = 2,
  bfloat16 = 3,
  int32 = 4,
  int64 = 5,
  uint8 = 6,
  float64 = 7,
  uint32 = 8,
  uint64 = 9,
};

[[nodiscard]] constexpr const char* to_string(element_type type) noexcept {
  switch (type) {
    case element_type::float32:
      return "float32";
    case element_type::float16:
      return "float16";
    case element_type::bfloat16:
      return "bfloat16";
    case element_type::int32:
      return "int32";
    case element_type::int64:
      return "int64";
    case element_type::uint8:
      return "uint8";
    case element_type::float64:
      return "float64";
    case element_type::uint32:
      return "uint32";
    case element_type::uint64:
      return "uint64";
  }
  return "user";
}

/// Maps a C++ type to its element type. Specialise it for your own half or fixed-point type:
///     template <> struct checkrow::element_traits<my_half> {
///       static constexpr auto type = checkrow::element_type::float16; };
/// The type must be trivially copyable; its size is kept beside the code.
template <class T>
struct element_traits;

template <>
struct element_traits<float> {
  static constexpr auto type = element_type::float32;
};
template <>
struct element_traits<double> {
  static constexpr auto type = element_type::float64;
};
template <>
struct element_traits<std::int32_t> {
  static constexpr auto type = element_type::int32;
};
template <>
struct element_traits<std::int64_t> {
  static constexpr auto type = element_type::int64;
};
template <>
struct element_traits<std::uint8_t> {
  static constexpr auto type = element_type::uint8;
};
template <>
struct element_traits<std::byte> {
  static constexpr auto type = element_type::uint8;
};
template <>
struct element_traits<std::uint32_t> {
  static constexpr auto type = element_type::uint32;
};
template <>
struct element_traits<std::uint64_t> {
  static constexpr auto type = element_type::uint64;
};
#if defined(__FLT16_MANT_DIG__) && !defined(__CUDACC__) && \
    (defined(__x86_64__) || defined(__clang__) || __GNUC__ >= 13)  // gcc 12 for Arm has it in C only
template <>
struct element_traits<_Float16> {
  static constexpr auto type = element_type::float16;
};
#endif

#if defined(__BFLT16_MANT_DIG__) && !defined(__CUDACC__)
template <>
struct element_traits<__bf16> {
  static constexpr auto type = element_type::bfloat16;
};
#endif

/// Storage of an IEEE half, for trainers whose half type is a bit pattern.
struct half_bits {
  std::uint16_t bits;
};
/// Storage of a bfloat16: the upper half of a float.
struct bfloat16_bits {
  std::uint16_t bits;
};
template <>
struct element_traits<half_bits> {
  static constexpr auto type = element_type::float16;
};
template <>
struct element_traits<bfloat16_bits> {
  static constexpr auto type = element_type::bfloat16;
};

template <class T>
concept element = sizeof(element_traits<T>) > 0 && sizeof(T) <= 255;

/// One column of a row: `width` elements of `element_bytes` each.
struct column_shape {
  element_type element = element_type::float32;
  std::uint8_t element_bytes = 4;
  std::uint32_t width = 1;  ///< 1 to 2^32 - 1

  [[nodiscard]] constexpr std::size_t row_bytes() const noexcept {
    return std::size_t{width} * element_bytes;
  }
  friend constexpr bool operator==(const column_shape&, const column_shape&) = default;
};

/// Where the rows of one column are read. Row i lies at base + stride * (index ? index[i] : i), so the same
/// codec reads a table in place, gathers its dirty rows, or walks a packed staging buffer.
struct row_view {
  const std::byte* base = nullptr;
  std::size_t stride = 0;                ///< bytes
  const std::uint64_t* index = nullptr;  ///< row numbers, or null for 0, 1, 2, ...

  [[nodiscard]] const std::byte* row(std::size_t i) const noexcept {
    return base + stride * (index != nullptr ? index[i] : i);
  }
};

/// Where the rows of one column are written; otherwise as row_view.
struct row_span {
  std::byte* base = nullptr;
  std::size_t stride = 0;
  const std::uint64_t* index = nullptr;
  bool streaming = false;  ///< a hint: no one reads the rows soon, so write them past the caches if possible

  [[nodiscard]] std::byte* row(std::size_t i) const noexcept {
    return base + stride * (index != nullptr ? index[i] : i);
  }
};

}  // namespace checkrow::inline v0
