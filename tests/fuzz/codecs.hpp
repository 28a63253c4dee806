// Shared by the targets that encode and decode: columns, where their rows lie, and rows to begin with.
#pragma once

#include <checkrow/codecs/builtin.hpp>
#include <checkrow/codecs/engine.hpp>

#include "../row_kinds.hpp"
#include "fuzz.hpp"

namespace fuzz {

using all_codecs = checkrow::detail::builtin_codecs;
inline constexpr std::uint16_t width_limit = 600;

/// What an input says of a column; `layout` is where its rows lie.
struct column_case {
  std::uint8_t codec = 0, element = 0, layout = 0, rows = 0;
  std::uint16_t width = 0;

  [[nodiscard]] checkrow::codec_choice choice() const {
    return all_codecs::choices[codec % all_codecs::size];
  }
  [[nodiscard]] checkrow::column_shape shape() const {
    constexpr checkrow::element_type types[] = {
        checkrow::element_type::float32, checkrow::element_type::float16, checkrow::element_type::bfloat16};
    const auto type = types[element % 3];
    return {type, static_cast<std::uint8_t>(type == checkrow::element_type::float32 ? 4 : 2),
            1 + std::uint32_t{width} % width_limit};
  }
  /// Up to 7 bytes between rows, so that they are not aligned.
  [[nodiscard]] std::size_t stride() const { return shape().row_bytes() + layout % 8; }
  [[nodiscard]] bool gathered() const { return (layout & 8) != 0; }
  [[nodiscard]] bool streaming() const { return (layout & 16) != 0; }
  /// From the last row to the first.
  [[nodiscard]] std::vector<std::uint64_t> index(std::size_t count) const {
    std::vector<std::uint64_t> out(gathered() ? count : 0);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = count - 1 - i;
    return out;
  }
  [[nodiscard]] std::size_t memory(std::size_t count) const {
    return count == 0 ? 0 : stride() * (count - 1) + shape().row_bytes();
  }
};

/// Rows of every kind that the codecs' tests know, as a table has them.
inline bytes some_rows(const column_case& column, std::size_t count) {
  row_kinds::random_source random{column.width + 7u};
  const std::size_t width = column.shape().width;
  bytes out(column.memory(count));
  std::vector<float> row(width);
  for (std::size_t i = 0; i < count; ++i) {
    row_kinds::fill_row(random, static_cast<row_kinds::kind>(i % row_kinds::kind_count), row);
    for (std::size_t d = 0; d < width; ++d) {
      // The upper half of a float is a bfloat16, and as good as any other half.
      const std::size_t size = column.shape().element_bytes;
      std::memcpy(out.data() + column.stride() * i + size * d,
                  reinterpret_cast<const std::byte*>(&row[d]) + 4 - size, size);
    }
  }
  return out;
}

/// Calls f(codec) with the codec of that column.
template <class F>
void with_codec(const column_case& column, F&& f) {
  require(all_codecs{}.visit(column.choice(), f), "a codec has its own id");
}

/// Calls f(column, codec) for columns to begin with.
template <class F>
void for_each_column(F&& f) {
  for (std::size_t codec = 0; codec < all_codecs::size; ++codec)
    for (const std::uint16_t width : {1, 4, 15, 31, 63, 99}) {
      const auto layout = static_cast<std::uint8_t>(codec + width);
      column_case column{static_cast<std::uint8_t>(codec), 0, layout, 36, width};
      for (column.element = 0; column.element < 3; ++column.element)
        with_codec(column, [&](const auto& of) {
          if (of.accepts(column.shape())) f(column, of);
        });
    }
}

}  // namespace fuzz
