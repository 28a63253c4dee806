// Bodies of codecs/builtin.hpp.
#pragma once

#include <checkrow/codecs/builtin.hpp>

namespace checkrow::inline v0::detail {

CHECKROW_INLINE decode_outcome decode_builtin(codec_choice choice, const column_shape& shape,
                                              std::span<const std::byte> bytes, std::size_t n,
                                              row_span rows) noexcept {
  bool good = false;
  const bool known = builtin_codecs{}.visit(
      choice, [&](const auto& codec) { good = codec.accepts(shape) && codec.decode(shape, bytes, n, rows); });
  if (!known) return decode_outcome::unknown;
  return good ? decode_outcome::decoded : decode_outcome::malformed;
}

}  // namespace checkrow::inline v0::detail
