// Packs and unpacks the parameters of eight rows at once. See packed_parameters.hpp; integers only, so no
// canonical block.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <checkrow/detail/unpack_plan.hpp>
#include <cstddef>
#include <cstdint>

namespace checkrow::inline v0::detail::avx2 {

/// `groups` times eight rows: offset << 16 | scale code of each to `to`, if that is not null; the answer has
/// a bit for each exception of the first 64 rows.
[[gnu::noinline, gnu::target("avx2")]] inline std::uint64_t unpack_parameters(const unpack_plan& plan,
                                                                              const std::byte* from,
                                                                              std::size_t groups,
                                                                              std::byte* to) noexcept {
  const __m256i bytes = _mm256_load_si256(reinterpret_cast<const __m256i*>(plan.bytes));
  const __m256i shifts = _mm256_load_si256(reinterpret_cast<const __m256i*>(plan.shifts));
  const __m256i scale_mask = _mm256_set1_epi32(static_cast<int>(plan.scale_mask));
  const __m256i offset_mask = _mm256_set1_epi32(static_cast<int>(plan.offset_mask));
  const __m256i base = _mm256_set1_epi32(static_cast<int>(plan.base));
  const __m128i scale_bits = _mm_cvtsi32_si128(static_cast<int>(plan.scale_bits));
  const __m128i scale_shift = _mm_cvtsi32_si128(static_cast<int>(plan.scale_shift));
  std::uint64_t exceptions = 0;
  for (std::size_t group = 0; group < groups; ++group, from += plan.row_bits) {
    const __m256i halves = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + plan.half_offset())), 1);
    const __m256i fields = _mm256_srlv_epi32(_mm256_shuffle_epi8(halves, bytes), shifts);
    const __m256i scale = _mm256_and_si256(fields, scale_mask);
    const __m256i exception = _mm256_cmpeq_epi32(scale, _mm256_setzero_si256());
    if (group < 8)
      exceptions |= std::uint64_t{static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(exception)))}
                    << (8 * group);
    if (to == nullptr) continue;
    const __m256i offset =
        _mm256_slli_epi32(_mm256_and_si256(_mm256_srl_epi32(fields, scale_bits), offset_mask), 16);
    const __m256i narrow = _mm256_add_epi32(base, _mm256_sll_epi32(scale, scale_shift));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_add_epi32(offset, _mm256_andnot_si256(exception, narrow)));
    to += 32;
  }
  return exceptions;
}

/// Packs `groups` times eight rows of 4 bytes in place, row_bits at most unpack_limit. `lowest` is the least
/// scale code and the least offset, offset << 16 | scale code.
[[gnu::noinline, gnu::target("avx2")]] inline void pack_groups(std::byte* rows, std::size_t groups,
                                                               unsigned row_bits, unsigned scale_bits,
                                                               unsigned scale_shift,
                                                               std::uint32_t lowest) noexcept {
  const __m256i low_halves = _mm256_set1_epi32(0xffff), low_words = _mm256_set1_epi64x(0xffffffff);
  const __m256i least = _mm256_set1_epi32(static_cast<int>(lowest));
  const __m128i to_offset = _mm_cvtsi32_si128(static_cast<int>(scale_bits));
  const __m128i to_scale = _mm_cvtsi32_si128(static_cast<int>(scale_shift));
  const __m128i to_pair = _mm_cvtsi32_si128(static_cast<int>(row_bits));
  std::byte* to = rows;  // it never passes the row that is read: 28 bytes at most after the first group's 32
  for (std::size_t group = 0; group < groups; ++group, rows += 32, to += row_bits) {
    const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows));
    const __m256i exception = _mm256_cmpeq_epi32(_mm256_and_si256(all, low_halves), _mm256_setzero_si256());
    const __m256i above = _mm256_sub_epi32(all, _mm256_andnot_si256(exception, least));
    const __m256i steps = _mm256_srl_epi32(_mm256_and_si256(above, low_halves), to_scale);
    const __m256i scale = _mm256_add_epi32(_mm256_add_epi32(steps, _mm256_set1_epi32(1)), exception);
    const __m256i fields = _mm256_or_si256(scale, _mm256_sll_epi32(_mm256_srli_epi32(above, 16), to_offset));
    const __m256i pairs = _mm256_or_si256(_mm256_and_si256(fields, low_words),
                                          _mm256_sll_epi64(_mm256_srli_epi64(fields, 32), to_pair));
    alignas(32) std::uint64_t pair[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(pair), pairs);
    store_pairs(to, pair[0], pair[1], pair[2], pair[3], row_bits);
  }
}

}  // namespace checkrow::inline v0::detail::avx2

#endif
