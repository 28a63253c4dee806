// What a SIMD engine is asked to do: many rows of one section at once. Rows that it can't do, it names.
#pragma once

#include <checkrow/detail/small_floats.hpp>
#include <checkrow/element.hpp>
#include <cstddef>
#include <cstdint>

namespace checkrow::inline v0::detail {

/// Rows an engine is given at most in one call: it answers with a bit for each.
inline constexpr std::size_t batch_limit = 64;

/// A section that is being written. Parameters and slots are those of row 0.
struct encode_job {
  row_view rows;
  std::size_t count;   ///< of rows in the section
  std::size_t width;   ///< elements
  std::size_t stride;  ///< bytes of a slot
  bool symmetric;      ///< rows have no offset
  std::byte* parameters;
  std::byte* slots;
  int bits = 0;  ///< of a code; this and the type for rows of half and bfloat16 only
  small_type type = small_type::half;
};

/// A section that is being read; it was found valid. Slots are those of row 0, parameters ({u16, i16},
/// unpacked) those of the first row that is asked for.
struct decode_job {
  row_span rows;
  std::size_t width;
  std::size_t stride;
  bool symmetric;
  const std::byte* parameters;
  const std::byte* slots;
  int bits = 0;  ///< as in encode_job
  small_type type = small_type::half;
};

/// Writes parameters and codes of the rows [first, first + count), count <= batch_limit. Bit i of the answer:
/// row first + i is not narrow, or not for this engine to judge; its parameters and slot hold anything.
using batch_encoder = std::uint64_t (*)(const encode_job&, std::size_t first, std::size_t count) noexcept;

/// Writes the elements of the rows [first, first + count), count <= batch_limit, except of those whose bit is
/// set in the answer: they are not narrow.
using batch_decoder = std::uint64_t (*)(const decode_job&, std::size_t first, std::size_t count) noexcept;

/// After a section that was streamed: what this thread writes next is seen after it. (Once a section, since
/// it waits until memory has taken everything.)
inline void finish_streaming() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace checkrow::inline v0::detail
