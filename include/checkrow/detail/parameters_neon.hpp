// Packs and unpacks the parameters of eight rows at once, as parameters_avx2.hpp does, for 64-bit Arm.
#pragma once

#if defined(__aarch64__)

#include <arm_neon.h>

#include <checkrow/detail/unpack_plan.hpp>
#include <cstddef>
#include <cstdint>

namespace checkrow::inline v0::detail::neon {

/// Four rows of a group, from the beginning of their half: offset << 16 | scale code; `exception` gets all
/// bits where a row is one.
[[gnu::always_inline]] inline uint32x4_t unpack_half(const unpack_plan& plan, const std::byte* from, int half,
                                                     uint32x4_t& exception) noexcept {
  const uint8x16_t packed = vld1q_u8(reinterpret_cast<const std::uint8_t*>(from));
  const uint32x4_t words = vreinterpretq_u32_u8(vqtbl1q_u8(packed, vld1q_u8(plan.bytes + 16 * half)));
  const uint32x4_t fields = vshlq_u32(words, vnegq_s32(vld1q_s32(plan.shifts + 4 * half)));
  const uint32x4_t scale = vandq_u32(fields, vdupq_n_u32(plan.scale_mask));
  const uint32x4_t above = vshlq_u32(fields, vdupq_n_s32(-static_cast<int>(plan.scale_bits)));
  const uint32x4_t offset = vshlq_n_u32(vandq_u32(above, vdupq_n_u32(plan.offset_mask)), 16);
  const uint32x4_t steps = vshlq_u32(scale, vdupq_n_s32(static_cast<int>(plan.scale_shift)));
  exception = vceqzq_u32(scale);
  return vaddq_u32(offset, vbicq_u32(vaddq_u32(vdupq_n_u32(plan.base), steps), exception));
}

/// `groups` times eight rows: offset << 16 | scale code of each to `to`, if that is not null; the answer has
/// a bit for each exception of the first 64 rows.
[[gnu::noinline]] inline std::uint64_t unpack_parameters(const unpack_plan& of, const std::byte* from,
                                                         std::size_t groups, std::byte* to) noexcept {
  const unpack_plan plan = of;  // which no store changes
  const uint16x8_t bits = {1, 2, 4, 8, 16, 32, 64, 128};
  std::uint64_t exceptions = 0;
  for (std::size_t group = 0; group < groups; ++group, from += plan.row_bits) {
    uint32x4_t low_exception, high_exception;
    const uint32x4_t low = unpack_half(plan, from, 0, low_exception);
    const uint32x4_t high = unpack_half(plan, from + plan.half_offset(), 1, high_exception);
    if (group < 8) {
      const uint16x8_t mask =
          vuzp1q_u16(vreinterpretq_u16_u32(low_exception), vreinterpretq_u16_u32(high_exception));
      exceptions |= std::uint64_t{vaddvq_u16(vandq_u16(mask, bits))} << (8 * group);
    }
    if (to == nullptr) continue;
    vst1q_u8(reinterpret_cast<std::uint8_t*>(to), vreinterpretq_u8_u32(low));
    vst1q_u8(reinterpret_cast<std::uint8_t*>(to + 16), vreinterpretq_u8_u32(high));
    to += 32;
  }
  return exceptions;
}

/// Packs `groups` times eight rows of 4 bytes in place, row_bits at most unpack_limit. `lowest` is the least
/// scale code and the least offset, offset << 16 | scale code.
[[gnu::noinline]] inline void pack_groups(std::byte* rows, std::size_t groups, unsigned row_bits,
                                          unsigned scale_bits, unsigned scale_shift,
                                          std::uint32_t lowest) noexcept {
  const auto pairs_of = [&](const std::byte* four) noexcept {
    const uint32x4_t all = vreinterpretq_u32_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(four)));
    const uint32x4_t low_halves = vdupq_n_u32(0xffff);
    const uint32x4_t narrow = vtstq_u32(all, low_halves);
    const uint32x4_t above = vsubq_u32(all, vandq_u32(narrow, vdupq_n_u32(lowest)));
    const uint32x4_t steps =
        vshlq_u32(vandq_u32(above, low_halves), vdupq_n_s32(-static_cast<int>(scale_shift)));
    const uint32x4_t scale = vsubq_u32(steps, narrow);
    const uint32x4_t offset = vshlq_u32(vshrq_n_u32(above, 16), vdupq_n_s32(static_cast<int>(scale_bits)));
    const uint64x2_t fields = vreinterpretq_u64_u32(vorrq_u32(scale, offset));
    const uint64x2_t even = vandq_u64(fields, vdupq_n_u64(0xffffffff));
    return vorrq_u64(even, vshlq_u64(vshrq_n_u64(fields, 32), vdupq_n_s64(static_cast<int>(row_bits))));
  };
  std::byte* to = rows;  // it never passes the row that is read: 28 bytes at most after the first group's 32
  for (std::size_t group = 0; group < groups; ++group, rows += 32, to += row_bits) {
    const uint64x2_t low = pairs_of(rows), high = pairs_of(rows + 16);
    store_pairs(to, vgetq_lane_u64(low, 0), vgetq_lane_u64(low, 1), vgetq_lane_u64(high, 0),
                vgetq_lane_u64(high, 1), row_bits);
  }
}

}  // namespace checkrow::inline v0::detail::neon

#endif
