// Sixteen lanes: the vocabulary that the lanes_*.inc are written in, for AVX-512.
//
// Arithmetic is by intrinsics with a rounding mode: neither compiler contracts, reorders or approximates
// those, whatever its flags.
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

#define CHECKROW_TARGET \
  gnu::target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")
#define CHECKROW_LANES [[gnu::always_inline, CHECKROW_TARGET]] inline
#define CHECKROW_LANES_ENTRY [[gnu::noinline, CHECKROW_TARGET]] inline

#if !defined(__clang__)  // gcc 12 warns of its own intrinsics
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#if defined(__clang__)
#define CHECKROW_UNROLL _Pragma("clang loop unroll(full)")
#else
#define CHECKROW_UNROLL _Pragma("GCC unroll 16")
#endif

CHECKROW_CANONICAL_BEGIN

namespace checkrow::inline v0::detail::avx512 {

using floats = __m512;
using ints = __m512i;
inline constexpr std::size_t lanes = 16;
inline constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

CHECKROW_LANES floats fill(float value) noexcept { return _mm512_set1_ps(value); }
CHECKROW_LANES ints fill(int value) noexcept { return _mm512_set1_epi32(value); }
CHECKROW_LANES floats load(const std::byte* from) noexcept { return _mm512_loadu_ps(from); }
CHECKROW_LANES ints load_ints(const std::byte* from) noexcept { return _mm512_loadu_si512(from); }
CHECKROW_LANES void store(std::byte* to, floats a) noexcept { _mm512_storeu_ps(to, a); }
CHECKROW_LANES void store(std::byte* to, ints a) noexcept { _mm512_storeu_si512(to, a); }
/// From memory, and to memory, that is likely in no cache. (By halves that is 1.1 to 1.3 times as fast,
/// measured on a Zen 5.)
CHECKROW_LANES floats load_far(const std::byte* from) noexcept {
  const auto* const halves = reinterpret_cast<const float*>(from);
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(halves)), _mm256_loadu_ps(halves + 8), 1);
}
CHECKROW_LANES void store_far(std::byte* to, floats a) noexcept {
  _mm256_storeu_ps(reinterpret_cast<float*>(to), _mm512_castps512_ps256(a));
  _mm256_storeu_ps(reinterpret_cast<float*>(to + 32), _mm512_extractf32x8_ps(a, 1));
}
CHECKROW_LANES void stream(std::byte* to, floats a) noexcept {
  _mm512_stream_ps(reinterpret_cast<float*>(to), a);
}

CHECKROW_LANES floats add(floats a, floats b) noexcept { return _mm512_add_round_ps(a, b, nearest); }
CHECKROW_LANES floats subtract(floats a, floats b) noexcept { return _mm512_sub_round_ps(a, b, nearest); }
CHECKROW_LANES floats multiply(floats a, floats b) noexcept { return _mm512_mul_round_ps(a, b, nearest); }
CHECKROW_LANES floats divide(floats a, floats b) noexcept { return _mm512_div_round_ps(a, b, nearest); }
/// RN(a * b + c).
CHECKROW_LANES floats fused(floats a, floats b, floats c) noexcept {
  return _mm512_fmadd_round_ps(a, b, c, nearest);
}
/// Half to even; INT_MIN where that is out of range.
CHECKROW_LANES ints round(floats a) noexcept { return _mm512_cvt_roundps_epi32(a, nearest); }
CHECKROW_LANES floats to_floats(ints a) noexcept { return _mm512_cvt_roundepi32_ps(a, nearest); }

CHECKROW_LANES ints bits_of(floats a) noexcept { return _mm512_castps_si512(a); }
CHECKROW_LANES floats float_of(ints a) noexcept { return _mm512_castsi512_ps(a); }
CHECKROW_LANES ints add(ints a, ints b) noexcept { return _mm512_add_epi32(a, b); }
CHECKROW_LANES ints both(ints a, ints b) noexcept { return _mm512_and_si512(a, b); }
CHECKROW_LANES ints either(ints a, ints b) noexcept { return _mm512_or_si512(a, b); }
CHECKROW_LANES ints greater(ints a, ints b) noexcept { return _mm512_max_epi32(a, b); }
template <int N>
CHECKROW_LANES ints shift_left(ints a) noexcept {
  return _mm512_slli_epi32(a, N);
}
template <int N>
CHECKROW_LANES ints shift_right(ints a) noexcept {
  return _mm512_srli_epi32(a, N);
}
template <int N>
CHECKROW_LANES ints shift_right_signed(ints a) noexcept {
  return _mm512_srai_epi32(a, N);
}
/// A bit for each lane that is at most `limit`, unsigned.
CHECKROW_LANES unsigned at_most(ints a, unsigned limit) noexcept {
  return _mm512_cmple_epu32_mask(a, _mm512_set1_epi32(static_cast<int>(limit)));
}

// ---------------------------------------------------------------------------------- rows, lane by lane

/// The smaller, and the greater; not for NaN. Zeros of either sign are the same.
struct lesser_of {
  CHECKROW_LANES static floats of(floats a, floats b) noexcept { return _mm512_min_ps(a, b); }
};
struct greater_of {
  CHECKROW_LANES static floats of(floats a, floats b) noexcept { return _mm512_max_ps(a, b); }
};

/// Looks for NaN and infinity in passing: both make a sum of products with zero NaN. (One sum of all would be
/// a chain that takes longer than all the rest.)
struct nan_watch {
  ints seen = _mm512_setzero_si512();
  CHECKROW_LANES nan_watch() noexcept {}
  CHECKROW_LANES void watch(floats a) noexcept { see(multiply(a, _mm512_setzero_ps())); }
  CHECKROW_LANES void watch(floats a, floats b, floats c, floats d) noexcept {
    const floats zero = _mm512_setzero_ps();
    see(fused(a, zero, fused(b, zero, fused(c, zero, multiply(d, zero)))));
  }
  [[nodiscard]] CHECKROW_LANES bool found() const noexcept {
    return _mm512_test_epi32_mask(seen, fill(0x7fffffff)) != 0;
  }

 private:
  CHECKROW_LANES void see(floats zero_or_nan) noexcept { seen = either(seen, bits_of(zero_or_nan)); }
};

/// Reduces 16 vectors at once, of which neighbours have been combined already: lane i of the result is
/// the reduction of vector i.
template <class Op>
CHECKROW_LANES floats reduce_pairs(const floats* a) noexcept {
  floats b[4], c[2];
  CHECKROW_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m512d x = _mm512_castps_pd(a[2 * i]), y = _mm512_castps_pd(a[2 * i + 1]);
    b[i] = Op::of(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
  }
  for (int i = 0; i < 2; ++i)
    c[i] = Op::of(_mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0x88),
                  _mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0xdd));
  return Op::of(_mm512_shuffle_f32x4(c[0], c[1], 0x88), _mm512_shuffle_f32x4(c[0], c[1], 0xdd));
}
CHECKROW_LANES floats unpack_low(floats a, floats b) noexcept { return _mm512_unpacklo_ps(a, b); }
CHECKROW_LANES floats unpack_high(floats a, floats b) noexcept { return _mm512_unpackhi_ps(a, b); }

// -------------------------------------------------------------------------- parts of a block of 64 elements

inline constexpr std::size_t block = 4 * lanes;

/// The first `count` elements of a block, 0 to 64.
struct part {
  __mmask64 all;

  CHECKROW_LANES explicit part(std::size_t count) noexcept
      : all(count == block ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) {}

  /// Vector i of the block, with `rest` in the other lanes.
  [[nodiscard]] CHECKROW_LANES floats load(const std::byte* from, int i, floats rest) const noexcept {
    return _mm512_mask_loadu_ps(rest, lanes_of(i), from + 64 * i);
  }
  CHECKROW_LANES void store(std::byte* to, int i, floats a) const noexcept {
    _mm512_mask_storeu_ps(to + 64 * i, lanes_of(i), a);
  }
  /// Codes, one a byte, with zeros in the other lanes.
  [[nodiscard]] CHECKROW_LANES ints clear(ints codes) const noexcept {
    return _mm512_maskz_mov_epi8(all, codes);
  }
  /// All bits in the lanes of vector i that exist.
  [[nodiscard]] CHECKROW_LANES ints existing(int i) const noexcept { return _mm512_movm_epi32(lanes_of(i)); }
  [[nodiscard]] CHECKROW_LANES __mmask16 lanes_of(int i) const noexcept {
    return static_cast<__mmask16>(all >> 16 * i);
  }
};

/// Four vectors, of a block's elements in order.
struct four {
  ints at[4];
};

/// Integers to codes, one a byte: saturated at 0 and `top`.
CHECKROW_LANES ints saturate(const four& q, int top) noexcept {
  const ints order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const ints bytes =
      _mm512_packus_epi16(_mm512_packs_epi32(q.at[0], q.at[1]), _mm512_packs_epi32(q.at[2], q.at[3]));
  return _mm512_min_epu8(_mm512_permutexvar_epi32(order, bytes), _mm512_set1_epi8(static_cast<char>(top)));
}

/// Where the eight codes of each 64 bits lie in 3 bytes; and from there to one a byte.
struct triples {
  alignas(64) std::uint8_t pack[64] = {};
  alignas(64) std::uint8_t unpack[64] = {};
  constexpr triples() noexcept {
    for (std::size_t i = 0; i < 24; ++i) pack[i] = static_cast<std::uint8_t>(i / 3 * 8 + i % 3);
    for (std::size_t i = 0; i < 64; ++i)
      unpack[i] = static_cast<std::uint8_t>(i % 8 < 3 ? i / 8 * 3 + i % 8 : 63);
  }
};
inline constexpr triples triple_orders{};

/// Codes of a block, packed: the result's first 8 * Bits bytes.
template <int Bits>
CHECKROW_LANES ints pack(ints codes) noexcept {
  if constexpr (Bits == 8) {
    return codes;
  } else {
    const ints pairs = _mm512_maddubs_epi16(codes, _mm512_set1_epi16(1 | (1 << (8 + Bits))));
    if constexpr (Bits == 4) {
      return _mm512_castsi256_si512(_mm512_cvtepi16_epi8(pairs));
    } else {
      const ints quads = _mm512_madd_epi16(pairs, _mm512_set1_epi32(1 | (1 << (16 + 2 * Bits))));
      if constexpr (Bits == 2) {
        return _mm512_castsi128_si512(_mm512_cvtepi32_epi8(quads));
      } else {
        const ints eights = _mm512_or_si512(quads, _mm512_srli_epi64(quads, 20));
        return _mm512_permutexvar_epi8(_mm512_load_si512(triple_orders.pack), eights);
      }
    }
  }
}

template <int Bits>
CHECKROW_LANES void store_packed(std::byte* to, ints packed) noexcept {
  if constexpr (Bits == 8)
    _mm512_storeu_si512(to, packed);
  else if constexpr (Bits == 4)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(packed));
  else if constexpr (Bits == 2)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_castsi512_si128(packed));
  else
    _mm256_mask_storeu_epi8(to, 0xffffff, _mm512_castsi512_si256(packed));
}
CHECKROW_LANES void store_packed_part(std::byte* to, ints packed, std::size_t bytes) noexcept {
  _mm512_mask_storeu_epi8(to, part(bytes).all, packed);
}

/// 8 * Bits packed bytes; reads no more.
template <int Bits>
CHECKROW_LANES ints load_packed(const std::byte* from) noexcept {
  if constexpr (Bits == 8)
    return _mm512_loadu_si512(from);
  else if constexpr (Bits == 4)
    return _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  else if constexpr (Bits == 2)
    return _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  else
    return _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(0xffffff, from));
}
CHECKROW_LANES ints load_packed_part(const std::byte* from, std::size_t bytes) noexcept {
  return _mm512_maskz_loadu_epi8(part(bytes).all, from);
}

/// The codes of a block as integers.
template <int Bits>
CHECKROW_LANES four unpack(ints packed) noexcept {
  ints codes = packed;
  if constexpr (Bits != 8) {
    constexpr auto shifts = static_cast<long long>(Bits == 4   ? 0x1c1814100c080400
                                                   : Bits == 2 ? 0x0e0c0a0806040200
                                                               : 0x15120f0c09060300);
    ints eights;  // the bits of eight codes in each 64
    if constexpr (Bits == 4)
      eights = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(packed));
    else if constexpr (Bits == 2)
      eights = _mm512_cvtepu16_epi64(_mm512_castsi512_si128(packed));
    else
      eights = _mm512_permutexvar_epi8(_mm512_load_si512(triple_orders.unpack), packed);
    codes = _mm512_and_si512(_mm512_multishift_epi64_epi8(_mm512_set1_epi64(shifts), eights),
                             _mm512_set1_epi8((1 << Bits) - 1));
  }
  return {{_mm512_cvtepu8_epi32(_mm512_castsi512_si128(codes)),
           _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(codes, 1)),
           _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(codes, 2)),
           _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(codes, 3))}};
}

// clang-format off
#include <checkrow/detail/lanes_encode.inc>
#include <checkrow/detail/lanes_decode.inc>
#include <checkrow/detail/refit_avx512.inc>
#include <checkrow/detail/lanes_refit.inc>
#include <checkrow/detail/lanes_greedy.inc>
#include <checkrow/detail/small_avx512.inc>
#include <checkrow/detail/lanes_small.inc>
// clang-format on

}  // namespace checkrow::inline v0::detail::avx512

CHECKROW_CANONICAL_END

#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#undef CHECKROW_UNROLL
#undef CHECKROW_LANES_ENTRY
#undef CHECKROW_LANES
#undef CHECKROW_TARGET

#endif
