// Writes and reads quantized sections of float32 rows, see sections.hpp and section_layout.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <checkrow/detail/batch_job.hpp>
#include <checkrow/detail/pack_parameters.hpp>
#include <checkrow/detail/row_arithmetic.hpp>
#include <checkrow/detail/row_grid.hpp>
#include <checkrow/detail/section_check.hpp>
#include <checkrow/detail/section_layout.hpp>
#include <checkrow/element.hpp>
#include <checkrow/format/bytes.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace checkrow::inline v0::detail {

/// Class and grid of one row: by its min and max, or the searched one where the two rules of
/// row_arithmetic.hpp allow. Symmetric rows are not searched. (Inline, since a plan is larger than what it
/// takes to make one.)
[[nodiscard, gnu::always_inline]] inline row_plan plan_row(const float_row& row, row_grid grid, int bits,
                                                           const row_search& search) noexcept {
  row_plan plan = grid == row_grid::symmetric ? plan_symmetric(row, bits) : plan_asymmetric(row, bits);
  if (search.propose != nullptr && plan.kind == row_class::narrow && !on_grid(row, plan.narrow, bits)) {
    const narrow_grid found = search.propose(search.policy, row, plan.range, bits);
    if (eligible(found, plan.range, bits)) plan.narrow = found;
  }
  return plan;
}

/// The codes of one row, narrow or wide, packed into its slot.
template <int Bits>
void write_codes(const float_row& row, const row_plan& plan, std::byte* slot) noexcept {
  const bool wide = plan.kind == row_class::wide;
  const block_grid grid = wide ? block_grid{} : block_grid_of(plan.narrow, Bits);
  for (std::size_t first = 0; first < row.width; first += block_elements) {
    const float_row block = row.block(first, block_elements);
    std::uint8_t codes[block_elements];
    if (wide)
      encode_wide_block(block, plan.wide, codes);
    else
      encode_block(block, grid, codes);
    pack_codes<Bits>(codes, block.width, slot);
    slot += block_elements / 8 * Bits;
  }
}

/// Parameters and codes of one row.
template <int Bits>
void write_row(const float_row& row, const row_plan& plan, row_grid grid, std::byte* parameters,
               std::byte* slot) noexcept {
  stored_parameters stored{0, static_cast<std::int16_t>(plan.kind)};
  if (plan.kind == row_class::narrow) {
    stored.scale = static_cast<std::uint16_t>(plan.narrow.scale);
    stored.offset = static_cast<std::int16_t>(grid == row_grid::symmetric ? 0 : plan.narrow.offset);
  }
  format::store(parameters, stored);
  if (plan.kind == row_class::narrow || plan.kind == row_class::wide)
    write_codes<Bits>(row, plan, slot);
  else
    std::memset(slot, 0, packed_bytes(row.width, Bits));
}

/// Fills in the directory, which holds the row numbers so far, and appends the exceptions. Returns the bytes
/// of exception data.
inline std::uint64_t write_exceptions(const section_layout& at, row_view rows, std::size_t count, int bits,
                                      std::byte* section) noexcept {
  const parameter_reader parameters = parameters_in(section, at);
  std::byte* const data = section + at.directory + count * directory_entry_bytes;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* entry = section + at.directory + i * directory_entry_bytes;
    const std::size_t row = format::load<std::uint32_t>(entry);
    format::store(entry + 4, static_cast<std::uint32_t>(offset));
    if (parameters[row].kind() == row_class::wide) {
      const row_plan plan = plan_asymmetric({rows.row(row), at.width}, bits);
      format::store(data + offset, parameters_of(plan.wide));
      offset += wide_bytes;
    } else {
      std::memcpy(data + offset, rows.row(row), at.raw_bytes());
      offset += at.raw_bytes();
    }
  }
  return offset;
}

/// What follows when codes, parameters of 4 bytes a row and the row numbers of the directory are written:
/// packs the parameters and writes all the rest. Returns the section's bytes.
[[nodiscard]] inline std::size_t finish_section(section_layout at, row_view rows, std::uint32_t exceptions,
                                                int bits, std::byte* out) noexcept {
  const std::size_t codes_end = section_layout::codes + at.rows * at.stride;
  std::memset(out + codes_end, 0, at.parameters - codes_end);
  const parameter_frame frame = pack_parameters(out + at.parameters, at.rows);
  const std::byte* const row_numbers = out + at.directory;
  at.pack(frame.bytes(at.rows));
  std::memmove(out + at.directory, row_numbers, exceptions * directory_entry_bytes);
  const std::size_t parameters_end = at.parameters + frame.bytes(at.rows);
  std::memset(out + parameters_end, 0, at.directory - parameters_end);
  std::memset(out, 0, section_layout::codes);
  format::store(out, exceptions);
  format::store(out + section_layout::frame, frame);
  const std::uint64_t data_bytes = write_exceptions(at, rows, exceptions, bits, out);
  format::store(out + 8, data_bytes);
  return at.directory + exceptions * directory_entry_bytes + data_bytes;
}

/// encode_section() of float32 rows. `batches`, if there is one, does the same as plan_row(), many rows at
/// once.
template <int Bits>
[[nodiscard]] std::size_t encode_float_section(const column_shape& shape, row_view rows, std::size_t n,
                                               row_grid grid, std::byte* out, const row_search& search,
                                               batch_encoder batches) noexcept {
  const default_float_environment environment;
  const section_layout at(shape, n, Bits);
  const encode_job job{
      rows, n, at.width, at.stride, grid == row_grid::symmetric, out + at.parameters, out + at.codes};
  std::uint32_t exceptions = 0;
  const auto one_row = [&](std::size_t i) {
    const float_row row{rows.row(i), at.width};
    const row_plan plan = plan_row(row, grid, Bits, search);
    write_row<Bits>(row, plan, grid, job.parameters + i * parameter_bytes, job.slots + i * at.stride);
    if (plan.kind != row_class::wide && plan.kind != row_class::raw) return;
    format::store(out + at.directory + exceptions * directory_entry_bytes, static_cast<std::uint32_t>(i));
    ++exceptions;
  };
  for (std::size_t first = 0; first < n; first += batch_limit) {
    const std::size_t count = std::min(batch_limit, n - first);
    std::uint64_t left = ~std::uint64_t{0} >> (batch_limit - count);
    if (batches != nullptr) left = batches(job, first, count);
    for (; left != 0; left &= left - 1) one_row(first + static_cast<std::size_t>(std::countr_zero(left)));
  }
  return finish_section(at, rows, exceptions, Bits, out);
}

/// The elements of one row, narrow or wide, from its slot. `exception` is where a wide row's parameters lie.
template <int Bits>
void read_codes(const section_layout& at, stored_parameters stored, row_grid grid, const std::byte* slot,
                const std::byte* exception, std::byte* to) noexcept {
  const bool wide = stored.kind() == row_class::wide;
  const auto wide_step = wide ? format::load<wide_parameters>(exception) : wide_parameters{};
  const bool symmetric = grid == row_grid::symmetric;
  const block_grid narrow = wide ? block_grid{}
                                 : stored_grid(stored.scale, symmetric ? -top_code(Bits) : stored.offset,
                                               symmetric ? 2 : offset_granularity(Bits), Bits);
  for (std::size_t first = 0; first < at.width; first += block_elements) {
    const std::size_t count = std::min(block_elements, at.width - first);
    std::uint8_t codes[block_elements];
    unpack_codes<Bits>(slot, count, codes);
    if (wide)
      decode_wide_block(codes, count, wide_step.step, wide_step.low, to + 4 * first);
    else
      decode_block(codes, count, narrow, to + 4 * first);
    slot += block_elements / 8 * Bits;
  }
}

/// The elements of one row of any class. Returns where the data of the next exception lies.
template <int Bits>
[[nodiscard]] const std::byte* read_row(const section_layout& at, stored_parameters stored, row_grid grid,
                                        const std::byte* slot, const std::byte* exception,
                                        std::byte* to) noexcept {
  switch (stored.kind()) {
    case row_class::zero:
      std::memset(to, 0, at.raw_bytes());
      return exception;
    case row_class::raw:
      std::memcpy(to, exception, at.raw_bytes());
      return exception + at.raw_bytes();
    case row_class::wide:
    case row_class::narrow:
      break;
  }
  read_codes<Bits>(at, stored, grid, slot, exception, to);
  return stored.kind() == row_class::wide ? exception + wide_bytes : exception;
}

/// decode_section() of float32 rows.
template <int Bits>
[[nodiscard]] bool decode_float_section(const column_shape& shape, std::span<const std::byte> bytes,
                                        std::size_t n, row_grid grid, row_span rows,
                                        batch_decoder batches) noexcept {
  const default_float_environment environment;
  section_layout at(shape, n, Bits);
  if (!section_is_valid(bytes, at, grid, Bits)) return false;
  const std::byte* section = bytes.data();
  const parameter_reader parameters = parameters_in(section, at);
  stored_parameters block[batch_limit];
  const decode_job job{rows,
                       at.width,
                       at.stride,
                       grid == row_grid::symmetric,
                       reinterpret_cast<const std::byte*>(block),
                       section + at.codes};
  const std::byte* exception =
      section + at.directory + directory_entry_bytes * format::load<std::uint32_t>(section);
  for (std::size_t first = 0; first < n; first += batch_limit) {
    const std::size_t count = std::min(batch_limit, n - first);
    parameters.read(first, count, block);
    std::uint64_t left = ~std::uint64_t{0} >> (batch_limit - count);
    if (batches != nullptr) left = batches(job, first, count);
    for (; left != 0; left &= left - 1) {
      const std::size_t i = first + static_cast<std::size_t>(std::countr_zero(left));
      exception =
          read_row<Bits>(at, block[i - first], grid, job.slots + i * at.stride, exception, rows.row(i));
    }
  }
  if (rows.streaming) finish_streaming();
  return true;
}

}  // namespace checkrow::inline v0::detail
