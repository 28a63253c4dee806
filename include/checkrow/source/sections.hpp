// Bodies of detail/sections.hpp. Header-only, a program compiles those bits and searches that it uses.
#pragma once

#include <checkrow/detail/engines.hpp>
#include <checkrow/detail/quantized_section.hpp>
#include <checkrow/detail/sections.hpp>
#include <checkrow/detail/small_section.hpp>

namespace checkrow::inline v0::detail {

template <int Bits, batch_kind Batches>
std::size_t encode_section(const column_shape& shape, row_view rows, std::size_t n, row_grid grid,
                           std::byte* out, const row_search& search) noexcept {
  const bool small = shape.element_bytes == 2;
  batch_encoder batches = nullptr;
  if constexpr (Batches != batch_kind::none)
    batches =
        small ? small_encoder_of<Bits, Batches>(shape.width) : batch_encoder_of<Bits, Batches>(shape.width);
  if (small) return encode_small_section(shape, rows, n, grid, Bits, out, batches, search);
  return encode_float_section<Bits>(shape, rows, n, grid, out, search, batches);
}

template <int Bits>
bool decode_section(const column_shape& shape, std::span<const std::byte> bytes, std::size_t n, row_grid grid,
                    row_span rows) noexcept {
  if (shape.element_bytes == 2) return decode_small_section(shape, bytes, n, grid, Bits, rows);
  return decode_float_section<Bits>(shape, bytes, n, grid, rows, batch_decoder_of<Bits>());
}

#if !CHECKROW_HEADER_ONLY
CHECKROW_SECTIONS()
#endif

}  // namespace checkrow::inline v0::detail
