// The bytes of all releases, as a hash a codec, and the rows that they come from.
#pragma once

#include <vector>

#include "../row_kinds.hpp"
#include "encode_some.hpp"

namespace codec_flags {

/// So many rows of each kind, as (rows, width).
inline std::vector<float> rows_of_all_kinds(std::size_t width, std::size_t of_each = 20) {
  const checkrow::detail::default_float_environment environment;
  std::vector<float> rows(of_each * row_kinds::kind_count * width);
  row_kinds::random_source random{width};
  for (std::size_t i = 0; i < of_each * row_kinds::kind_count; ++i)
    row_kinds::fill_row(random, static_cast<row_kinds::kind>(i % row_kinds::kind_count),
                        std::span(rows).subspan(i * width, width));
  return rows;
}

/// All widths, one codec.
inline std::uint64_t hash_of(const flavour& flavour, int engine, int codec) {
  std::uint64_t hash = 0;
  for (const std::size_t width : std::initializer_list<std::size_t>{2, 3, 7, 16, 64, 100, 128, 300}) {
    const std::vector<float> rows = rows_of_all_kinds(width);
    hash = hash * 0x9e3779b97f4a7c15 + flavour.encode(engine, codec, rows, rows.size() / width, width);
  }
  return hash;
}

/// Frozen: a change here is a change of the format.
inline constexpr std::uint64_t golden[codecs] = {
    0x1184b21e332445de, 0xd25bea20c16b7da3, 0x1a3552cfa0627628, 0xac8bf6cf93850205, 0x035c5c594e254a31,
    0xfcc2e2f46ee52649, 0xe76fcab2f69b6ced, 0xf6dd5883d0ff4bc2, 0x79cca2072838f59d, 0x23a34feaf6e9b0d4,
    0x64964f0522efc4f9, 0x74eb3fb9439ef714, 0xbf4936aa5012a447, 0xcaff708b67e170aa, 0x324714d9a3ec6154,
    0x8a5387dd533a0aa2, 0x2fa7c79f0b36438f, 0x36cc742ffb6022b9, 0xf9cda8a045b4be26, 0xb5e35952819d3134,
};

}  // namespace codec_flags
