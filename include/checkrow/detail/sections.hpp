// Quantized column sections, as section_layout.hpp says: the door between codecs and all that writes and
// reads rows.
#pragma once

#include <checkrow/detail/row_grid.hpp>
#include <checkrow/detail/section_layout.hpp>
#include <checkrow/element.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace checkrow::inline v0::detail {

/// The columns that quantizing codecs take: float32, half and bfloat16, at least two elements. (One element
/// would need more bytes for its parameters than it has.)
[[nodiscard]] constexpr bool quantizable(const column_shape& shape) noexcept {
  if (shape.width < 2) return false;
  if (shape.element == element_type::float32) return shape.element_bytes == 4;
  return (shape.element == element_type::float16 || shape.element == element_type::bfloat16) &&
         shape.element_bytes == 2;
}

/// Writes a section of n rows, n < 2^32, and returns its bytes. Where Batches is not none, engines may do
/// what `search` does. The rows must not change meanwhile. For 2, 3, 4 and 8 bits.
template <int Bits, batch_kind Batches>
[[nodiscard]] std::size_t encode_section(const column_shape& shape, row_view rows, std::size_t n,
                                         row_grid grid, std::byte* out, const row_search& search) noexcept;

/// Reads exactly n rows from untrusted bytes. False, and nothing written, unless they are a whole section.
template <int Bits>
[[nodiscard]] bool decode_section(const column_shape& shape, std::span<const std::byte> bytes, std::size_t n,
                                  row_grid grid, row_span rows) noexcept;

#if !CHECKROW_HEADER_ONLY  // all instances there are, declared here, defined in source/sections.hpp
#define CHECKROW_ENCODE_SECTION(declared, bits, batches)                   \
  declared template std::size_t encode_section<bits, batch_kind::batches>( \
      const column_shape&, row_view, std::size_t, row_grid, std::byte*, const row_search&) noexcept;
#define CHECKROW_SECTIONS_OF(declared, bits)                                                                \
  CHECKROW_ENCODE_SECTION(declared, bits, uniform)                                                          \
  CHECKROW_ENCODE_SECTION(declared, bits, refit)                                                            \
  CHECKROW_ENCODE_SECTION(declared, bits, none)                                                             \
  declared template bool decode_section<bits>(const column_shape&, std::span<const std::byte>, std::size_t, \
                                              row_grid, row_span) noexcept;
#define CHECKROW_SECTIONS(declared) \
  CHECKROW_SECTIONS_OF(declared, 2) \
  CHECKROW_SECTIONS_OF(declared, 3) \
  CHECKROW_SECTIONS_OF(declared, 4) \
  CHECKROW_SECTIONS_OF(declared, 8)
CHECKROW_SECTIONS(extern)
#endif

}  // namespace checkrow::inline v0::detail

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/sections.hpp>
#endif
