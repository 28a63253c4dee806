// One flavour of encode_some.cpp: the codecs compiled with that flavour's flags.
#pragma once

#include <cstdint>
#include <span>

namespace codec_flags {

inline constexpr int codecs =
    20;  ///< quantizing codecs, the last five of half and bfloat16 rows, in the order of encode_some.cpp

struct flavour {
  const char* name;
  bool fast_math;  ///< was it compiled with -ffast-math or -Ofast?
  /// Hashes of the bytes that the codec writes for rows (count, width), and of the rows that it reads back;
  /// 0 where this CPU does not have that codec_engine.
  std::uint64_t (*encode)(int engine, int codec, std::span<const float> rows, std::size_t count,
                          std::size_t width);
};

extern const flavour o0, o3, fast_math, no_fma;
extern const flavour ofast, sve, clang_o2, clang_fast;  // on Arm

}  // namespace codec_flags
