// Writes and reads quantized sections of half and bfloat16 rows. The layout is that of float32 rows, where a
// narrow row's two parameters are its grid's ends: the scale is order_of(high), the offset order_of(low) -
// 2^15 (0 where the codec is symmetric), and no row is wide.
#pragma once

#include <checkrow/detail/engines.hpp>
#include <checkrow/detail/quantized_section.hpp>
#include <checkrow/detail/small_rows.hpp>

namespace checkrow::inline v0::detail {

[[nodiscard]] constexpr small_type small_type_of(const column_shape& shape) noexcept {
  return shape.element == element_type::float16 ? small_type::half : small_type::bfloat16;
}

inline void pack_codes(int bits, const std::uint8_t* codes, std::size_t count, std::byte* out) noexcept {
  if (bits == 2) return pack_codes<2>(codes, count, out);
  if (bits == 3) return pack_codes<3>(codes, count, out);
  if (bits == 4) return pack_codes<4>(codes, count, out);
  std::memcpy(out, codes, count);
}
inline void unpack_codes(int bits, const std::byte* in, std::size_t count, std::uint8_t* codes) noexcept {
  if (bits == 2) return unpack_codes<2>(in, count, codes);
  if (bits == 3) return unpack_codes<3>(in, count, codes);
  if (bits == 4) return unpack_codes<4>(in, count, codes);
  std::memcpy(codes, in, count);
}

CHECKROW_CANONICAL_BEGIN

/// All codes of a row to its slot; false where the grid is not for this row.
[[nodiscard]] inline bool write_small_codes(const float_row& row, const small_grid& grid, int bits,
                                            std::byte* slot) noexcept {
  for (std::size_t first = 0; first < row.width; first += block_elements) {
    const float_row block = row.block(first, block_elements);
    std::uint8_t codes[block_elements];
    if (!small_codes(block, grid, codes)) return false;
    pack_codes(bits, codes, block.width, slot);
    slot += block_elements / 8 * static_cast<std::size_t>(bits);
  }
  return true;
}

/// Codes of a row that is neither zero nor out of range, by the searched grid where there is one that the row
/// gives back, else by its min and max. An invalid grid: the row is raw.
[[nodiscard]] inline small_grid write_small_row(small_type type, const float_row& row, const row_range& range,
                                                bool symmetric, int bits, const row_search& search,
                                                std::byte* slot) noexcept {
  const float most = float_of(range.magnitude);
  const float low = symmetric ? 0.0f - most : rounded_to(type, range.min);
  const small_grid grid =
      small_grid_of(type, low, symmetric ? most : rounded_to(type, range.max), bits, symmetric);
  if (search.propose != nullptr && range.min != range.max && !(grid.valid && on_small_grid(row, grid))) {
    const narrow_grid found = plan_row(row, row_grid::asymmetric, bits, search).narrow;  // as float32
    if (found.valid) {
      const block_grid ends = block_grid_of(found, bits);
      const small_grid better = small_grid_of(
          type, rounded_to(type, static_cast<float>(ends.offset) * ends.unit),
          rounded_to(type, static_cast<float>(ends.offset + top_code(bits) * ends.granularity) * ends.unit),
          bits, false);
      if (better.valid && reaches_ends(better, range, false) && write_small_codes(row, better, bits, slot))
        return better;
    }
  }
  if (grid.valid && reaches_ends(grid, range, symmetric) && write_small_codes(row, grid, bits, slot))
    return grid;
  return {};
}

/// Parameters and codes of one row, which is zero, narrow or raw. Returns whether it is raw.
[[nodiscard, gnu::noinline]] inline bool write_one_small_row(const encode_job& job, std::size_t i,
                                                             const row_search& search,
                                                             std::byte* scratch) noexcept {
  const row_range range = widen_row(job.type, job.rows.row(i), job.width, scratch);
  std::byte* const slot = job.slots + i * job.stride;
  stored_parameters stored;  // zero
  if (range.magnitude != 0) {
    small_grid grid;
    if (range.magnitude < infinite_magnitude)
      grid = write_small_row(job.type, {scratch, job.width}, range, job.symmetric, job.bits, search, slot);
    if (grid.valid) {
      stored.scale = order_of(narrow(job.type, grid.high));
      if (!job.symmetric)
        stored.offset = static_cast<std::int16_t>(order_of(narrow(job.type, grid.low)) - 32768);
    } else {
      stored.offset = static_cast<std::int16_t>(row_class::raw);
    }
  }
  format::store(job.parameters + i * parameter_bytes, stored);
  if (stored.scale == 0) std::memset(slot, 0, job.stride);
  return stored.kind() == row_class::raw;
}

CHECKROW_CANONICAL_END

/// encode_section() of half and bfloat16 rows. There is room to widen one, see section_layout::scratch().
[[nodiscard]] inline std::size_t encode_small_section(const column_shape& shape, row_view rows, std::size_t n,
                                                      row_grid kind, int bits, std::byte* out,
                                                      batch_encoder batches,
                                                      const row_search& search) noexcept {
  const default_float_environment environment;
  const section_layout at(shape, n, bits);
  const encode_job job{rows,
                       n,
                       at.width,
                       at.stride,
                       kind == row_grid::symmetric,
                       out + at.parameters,
                       out + at.codes,
                       bits,
                       small_type_of(shape)};
  std::byte* const scratch = out + at.bound() - at.scratch();
  std::uint32_t exceptions = 0;
  for (std::size_t first = 0; first < n; first += batch_limit) {
    const std::size_t count = std::min(batch_limit, n - first);
    std::uint64_t left = ~std::uint64_t{0} >> (batch_limit - count);
    if (batches != nullptr) left = batches(job, first, count);
    for (; left != 0; left &= left - 1) {
      const std::size_t i = first + static_cast<std::size_t>(std::countr_zero(left));
      if (write_one_small_row(job, i, search, scratch))
        format::store(out + at.directory + exceptions++ * directory_entry_bytes,
                      static_cast<std::uint32_t>(i));
    }
  }
  return finish_section(at, rows, exceptions, bits, out);
}

CHECKROW_CANONICAL_BEGIN

/// The elements of a narrow row.
[[gnu::noinline]] inline void read_small_codes(const decode_job& job, stored_parameters stored,
                                               const std::byte* slot, std::byte* to) noexcept {
  const float high = widen(job.type, bits_of_order(stored.scale));
  const float low = job.symmetric
                        ? 0.0f - high
                        : widen(job.type, bits_of_order(static_cast<std::uint16_t>(stored.offset + 32768)));
  const small_grid grid = stored_small_grid(job.type, low, high, job.bits);
  for (std::size_t first = 0; first < job.width; first += block_elements) {
    const std::size_t count = std::min(block_elements, job.width - first);
    std::uint8_t codes[block_elements];
    unpack_codes(job.bits, slot, count, codes);
    decode_small_block(codes, count, grid, to + 2 * first);
    slot += block_elements / 8 * static_cast<std::size_t>(job.bits);
  }
}

CHECKROW_CANONICAL_END

/// decode_section() of half and bfloat16 rows.
[[nodiscard]] inline bool decode_small_section(const column_shape& shape, std::span<const std::byte> bytes,
                                               std::size_t n, row_grid kind, int bits,
                                               row_span rows) noexcept {
  const default_float_environment environment;
  section_layout at(shape, n, bits);
  if (!section_is_valid(bytes, at, kind, bits)) return false;
  const std::byte* const section = bytes.data();
  const parameter_reader parameters = parameters_in(section, at);
  stored_parameters block[batch_limit];
  const decode_job job{rows,
                       at.width,
                       at.stride,
                       kind == row_grid::symmetric,
                       reinterpret_cast<const std::byte*>(block),
                       section + at.codes,
                       bits,
                       small_type_of(shape)};
  const batch_decoder batches = small_batch_decoder();
  const std::byte* raw =
      section + at.directory + directory_entry_bytes * format::load<std::uint32_t>(section);
  for (std::size_t first = 0; first < n; first += batch_limit) {
    const std::size_t count = std::min(batch_limit, n - first);
    parameters.read(first, count, block);
    std::uint64_t left = ~std::uint64_t{0} >> (batch_limit - count);
    if (batches != nullptr) left = batches(job, first, count);
    for (; left != 0; left &= left - 1) {
      const std::size_t i = first + static_cast<std::size_t>(std::countr_zero(left));
      const stored_parameters stored = block[i - first];
      if (stored.kind() == row_class::raw) {
        std::memcpy(rows.row(i), raw, at.raw_bytes());
        raw += at.raw_bytes();
      } else if (stored.kind() == row_class::zero) {
        std::memset(rows.row(i), 0, at.raw_bytes());
      } else {
        read_small_codes(job, stored, job.slots + i * at.stride, rows.row(i));
      }
    }
  }
  if (rows.streaming) finish_streaming();
  return true;
}

}  // namespace checkrow::inline v0::detail
