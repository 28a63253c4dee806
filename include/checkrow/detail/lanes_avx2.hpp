// Eight lanes: the vocabulary that the lanes_*.inc are written in, for AVX2, FMA and F16C.
//
// There are no intrinsics with a rounding mode here, and compilers contract, reorder and approximate the
// others as their flags allow. So the four operations are instructions; they are few in a row.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <checkrow/detail/batch_job.hpp>
#include <checkrow/detail/refit_search.hpp>
#include <checkrow/detail/row_arithmetic.hpp>
#include <checkrow/detail/section_layout.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define CHECKROW_TARGET gnu::target("avx2,fma,f16c")
#define CHECKROW_LANES [[gnu::always_inline, CHECKROW_TARGET]] inline
#define CHECKROW_LANES_ENTRY [[gnu::noinline, CHECKROW_TARGET]] inline

#if defined(__clang__)
#define CHECKROW_UNROLL _Pragma("clang loop unroll(full)")
#else
#define CHECKROW_UNROLL _Pragma("GCC unroll 16")
#endif

CHECKROW_CANONICAL_BEGIN

namespace checkrow::inline v0::detail::avx2 {

using floats = __m256;
using ints = __m256i;
inline constexpr std::size_t lanes = 8;

CHECKROW_LANES floats fill(float value) noexcept { return _mm256_set1_ps(value); }
CHECKROW_LANES ints fill(int value) noexcept { return _mm256_set1_epi32(value); }
CHECKROW_LANES floats load(const std::byte* from) noexcept {
  return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
}
CHECKROW_LANES ints load_ints(const std::byte* from) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const ints*>(from));
}
CHECKROW_LANES void store(std::byte* to, floats a) noexcept {
  _mm256_storeu_ps(reinterpret_cast<float*>(to), a);
}
CHECKROW_LANES void store(std::byte* to, ints a) noexcept {
  _mm256_storeu_si256(reinterpret_cast<ints*>(to), a);
}
/// From memory, and to memory, that is likely in no cache.
CHECKROW_LANES floats load_far(const std::byte* from) noexcept { return load(from); }
CHECKROW_LANES void store_far(std::byte* to, floats a) noexcept { store(to, a); }
CHECKROW_LANES void stream(std::byte* to, floats a) noexcept {
  _mm256_stream_ps(reinterpret_cast<float*>(to), a);
}

CHECKROW_LANES floats add(floats a, floats b) noexcept {
  asm("vaddps {%1, %0, %0|%0, %0, %1}" : "+x"(a) : "x"(b));
  return a;
}
CHECKROW_LANES floats subtract(floats a, floats b) noexcept {
  asm("vsubps {%1, %0, %0|%0, %0, %1}" : "+x"(a) : "x"(b));
  return a;
}
CHECKROW_LANES floats multiply(floats a, floats b) noexcept {
  asm("vmulps {%1, %0, %0|%0, %0, %1}" : "+x"(a) : "x"(b));
  return a;
}
CHECKROW_LANES floats divide(floats a, floats b) noexcept {
  asm("vdivps {%1, %0, %0|%0, %0, %1}" : "+x"(a) : "x"(b));
  return a;
}
/// RN(a * b + c).
CHECKROW_LANES floats fused(floats a, floats b, floats c) noexcept { return _mm256_fmadd_ps(a, b, c); }
/// Half to even; INT_MIN where that is out of range.
CHECKROW_LANES ints round(floats a) noexcept { return _mm256_cvtps_epi32(a); }
CHECKROW_LANES floats to_floats(ints a) noexcept { return _mm256_cvtepi32_ps(a); }

CHECKROW_LANES ints bits_of(floats a) noexcept { return _mm256_castps_si256(a); }
CHECKROW_LANES floats float_of(ints a) noexcept { return _mm256_castsi256_ps(a); }
CHECKROW_LANES ints add(ints a, ints b) noexcept { return _mm256_add_epi32(a, b); }
CHECKROW_LANES ints both(ints a, ints b) noexcept { return _mm256_and_si256(a, b); }
CHECKROW_LANES ints either(ints a, ints b) noexcept { return _mm256_or_si256(a, b); }
CHECKROW_LANES ints greater(ints a, ints b) noexcept { return _mm256_max_epi32(a, b); }
template <int N>
CHECKROW_LANES ints shift_left(ints a) noexcept {
  return _mm256_slli_epi32(a, N);
}
template <int N>
CHECKROW_LANES ints shift_right(ints a) noexcept {
  return _mm256_srli_epi32(a, N);
}
template <int N>
CHECKROW_LANES ints shift_right_signed(ints a) noexcept {
  return _mm256_srai_epi32(a, N);
}
/// A bit for each lane of a mask.
CHECKROW_LANES unsigned bits_of_mask(ints mask) noexcept {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
}
/// A bit for each lane that is at most `limit`, unsigned.
CHECKROW_LANES unsigned at_most(ints a, unsigned limit) noexcept {
  return bits_of_mask(_mm256_cmpeq_epi32(_mm256_min_epu32(a, fill(static_cast<int>(limit))), a));
}

// ---------------------------------------------------------------------------------- rows, lane by lane

/// The smaller, and the greater; not for NaN. Zeros of either sign are the same.
struct lesser_of {
  CHECKROW_LANES static floats of(floats a, floats b) noexcept { return _mm256_min_ps(a, b); }
};
struct greater_of {
  CHECKROW_LANES static floats of(floats a, floats b) noexcept { return _mm256_max_ps(a, b); }
};

/// Looks for NaN in passing.
struct nan_watch {
  ints most = _mm256_setzero_si256();
  CHECKROW_LANES nan_watch() noexcept {}
  CHECKROW_LANES void watch(floats a) noexcept { most = greater(most, both(bits_of(a), fill(0x7fffffff))); }
  CHECKROW_LANES void watch(floats a, floats b, floats c, floats d) noexcept {
    watch(a), watch(b), watch(c), watch(d);
  }
  [[nodiscard]] CHECKROW_LANES bool found() const noexcept {
    return bits_of_mask(_mm256_cmpgt_epi32(most, fill(0x7f800000))) != 0;
  }
};

/// Reduces 8 vectors at once, of which neighbours have been combined already: lane i of the result is the
/// reduction of vector i.
template <class Op>
CHECKROW_LANES floats reduce_pairs(const floats* a) noexcept {
  floats b[2];
  for (int i = 0; i < 2; ++i) {
    const __m256d x = _mm256_castps_pd(a[2 * i]), y = _mm256_castps_pd(a[2 * i + 1]);
    b[i] = Op::of(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)), _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)));
  }
  return Op::of(_mm256_permute2f128_ps(b[0], b[1], 0x20), _mm256_permute2f128_ps(b[0], b[1], 0x31));
}
CHECKROW_LANES floats unpack_low(floats a, floats b) noexcept { return _mm256_unpacklo_ps(a, b); }
CHECKROW_LANES floats unpack_high(floats a, floats b) noexcept { return _mm256_unpackhi_ps(a, b); }

// -------------------------------------------------------------------------- parts of a block of 32 elements

inline constexpr std::size_t block = 4 * lanes;

/// The first `count` elements of a block, 0 to 32.
struct part {
  ints of_vector[4];
  ints of_codes;

  CHECKROW_LANES explicit part(std::size_t count) noexcept {
    const int n = static_cast<int>(count);
    const ints lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (int i = 0; i < 4; ++i) of_vector[i] = _mm256_cmpgt_epi32(fill(n - 8 * i), lane);
    alignas(32) std::uint8_t bytes[block];
    for (std::size_t i = 0; i < block; ++i) bytes[i] = i < count ? 0xff : 0;
    of_codes = _mm256_load_si256(reinterpret_cast<const ints*>(bytes));
  }

  /// Vector i of the block, with `rest` in the other lanes.
  [[nodiscard]] CHECKROW_LANES floats load(const std::byte* from, int i, floats rest) const noexcept {
    const floats some = _mm256_maskload_ps(reinterpret_cast<const float*>(from + 32 * i), of_vector[i]);
    return _mm256_blendv_ps(rest, some, float_of(of_vector[i]));
  }
  CHECKROW_LANES void store(std::byte* to, int i, floats a) const noexcept {
    _mm256_maskstore_ps(reinterpret_cast<float*>(to + 32 * i), of_vector[i], a);
  }
  /// All bits in the lanes of vector i that exist.
  [[nodiscard]] CHECKROW_LANES ints existing(int i) const noexcept { return of_vector[i]; }
  /// Codes, one a byte, with zeros in the other lanes.
  [[nodiscard]] CHECKROW_LANES ints clear(ints codes) const noexcept { return both(codes, of_codes); }
};

/// Four vectors, of a block's elements in order.
struct four {
  ints at[4];
};

/// Integers to codes, one a byte: saturated at 0 and `top`.
CHECKROW_LANES ints saturate(const four& q, int top) noexcept {
  const ints order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const ints bytes =
      _mm256_packus_epi16(_mm256_packs_epi32(q.at[0], q.at[1]), _mm256_packs_epi32(q.at[2], q.at[3]));
  return _mm256_min_epu8(_mm256_permutevar8x32_epi32(bytes, order), _mm256_set1_epi8(static_cast<char>(top)));
}

/// Codes of a block, packed: the result's first 4 * Bits bytes.
template <int Bits>
CHECKROW_LANES ints pack(ints codes) noexcept {
  if constexpr (Bits == 8) {
    return codes;
  } else {
    const ints pairs = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(1 | (1 << (8 + Bits))));
    if constexpr (Bits == 4) {
      return _mm256_permute4x64_epi64(_mm256_packus_epi16(pairs, _mm256_setzero_si256()), 0x08);
    } else {
      const ints quads = _mm256_madd_epi16(pairs, fill(1 | (1 << (16 + 2 * Bits))));
      if constexpr (Bits == 2) {
        const ints some = _mm256_packus_epi16(_mm256_packus_epi32(quads, quads), _mm256_setzero_si256());
        return _mm256_permutevar8x32_epi32(some, _mm256_setr_epi32(0, 4, 1, 1, 1, 1, 1, 1));
      } else {
        const ints eights = either(quads, _mm256_srli_epi64(quads, 20));
        const ints halves = _mm256_shuffle_epi8(
            eights, _mm256_setr_epi8(0, 1, 2, 8, 9, 10, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                     -1, -1, -1, -1, -1, -1, 0, 1, 2, 8, 9, 10, -1, -1, -1, -1));
        return either(halves, _mm256_permute2x128_si256(halves, halves, 0x81));
      }
    }
  }
}

template <int Bits>
CHECKROW_LANES void store_packed(std::byte* to, ints packed) noexcept {
  if constexpr (Bits == 8) {
    store(to, packed);
  } else if constexpr (Bits == 4) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(packed));
  } else {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(packed));
    if constexpr (Bits == 3) {
      const int last = _mm_extract_epi32(_mm256_castsi256_si128(packed), 2);
      std::memcpy(to + 8, &last, 4);
    }
  }
}
CHECKROW_LANES void store_packed_part(std::byte* to, ints packed, std::size_t bytes) noexcept {
  std::byte all[32];
  store(all, packed);
  std::memcpy(to, all, bytes);
}

/// 4 * Bits packed bytes; reads no more.
template <int Bits>
CHECKROW_LANES ints load_packed(const std::byte* from) noexcept {
  if constexpr (Bits == 8) {
    return load_ints(from);
  } else if constexpr (Bits == 4) {
    return _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  } else {
    __m128i some = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    if constexpr (Bits == 3) {
      int last;
      std::memcpy(&last, from + 8, 4);
      some = _mm_insert_epi32(some, last, 2);
    }
    return _mm256_castsi128_si256(some);
  }
}
CHECKROW_LANES ints load_packed_part(const std::byte* from, std::size_t bytes) noexcept {
  std::byte all[32] = {};
  std::memcpy(all, from, bytes);
  return load_ints(all);
}

/// Eight codes, Bits bytes from `first` on in either half, to integers.
template <int Bits>
CHECKROW_LANES ints unpack_eight(ints halves, char first) noexcept {
  const int some = Bits == 2 ? 0x00000100 : Bits == 3 ? 0x00020100 : 0x03020100;
  const ints word = _mm256_shuffle_epi8(halves, fill(some + first * 0x01010101));
  const ints shifts = _mm256_setr_epi32(0, Bits, 2 * Bits, 3 * Bits, 4 * Bits, 5 * Bits, 6 * Bits, 7 * Bits);
  return both(_mm256_srlv_epi32(word, shifts), fill((1 << Bits) - 1));
}

/// The codes of a block as integers.
template <int Bits>
CHECKROW_LANES four unpack(ints packed) noexcept {
  const __m128i low = _mm256_castsi256_si128(packed);
  if constexpr (Bits == 8) {
    const __m128i high = _mm256_extracti128_si256(packed, 1);
    return {{_mm256_cvtepu8_epi32(low), _mm256_cvtepu8_epi32(_mm_srli_si128(low, 8)),
             _mm256_cvtepu8_epi32(high), _mm256_cvtepu8_epi32(_mm_srli_si128(high, 8))}};
  } else {
    const ints halves = _mm256_broadcastsi128_si256(low);
    return {{unpack_eight<Bits>(halves, 0), unpack_eight<Bits>(halves, Bits),
             unpack_eight<Bits>(halves, 2 * Bits), unpack_eight<Bits>(halves, 3 * Bits)}};
  }
}

// clang-format off
#include <checkrow/detail/lanes_encode.inc>
#include <checkrow/detail/lanes_decode.inc>
#include <checkrow/detail/refit_avx2.inc>
#include <checkrow/detail/lanes_refit.inc>
#include <checkrow/detail/lanes_greedy.inc>
#include <checkrow/detail/small_avx2.inc>
#include <checkrow/detail/lanes_small.inc>
// clang-format on

}  // namespace checkrow::inline v0::detail::avx2

CHECKROW_CANONICAL_END

#undef CHECKROW_UNROLL
#undef CHECKROW_LANES_ENTRY
#undef CHECKROW_LANES
#undef CHECKROW_TARGET

#endif
