// Eight lanes, in pairs of registers: the vocabulary that the lanes_*.inc are written in, for 64-bit Arm.
//
// To compilers most intrinsics here are plain operations on vectors, which they contract, reorder and
// approximate as their flags allow. So what they could change is an instruction.
#pragma once

#if defined(__aarch64__)

#include <arm_neon.h>

#include <checkrow/detail/batch_job.hpp>
#include <checkrow/detail/refit_search.hpp>
#include <checkrow/detail/row_arithmetic.hpp>
#include <checkrow/detail/section_layout.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>

#define CHECKROW_LANES [[gnu::always_inline]] inline
#define CHECKROW_LANES_ENTRY [[gnu::noinline]] inline

#if defined(__clang__)
#define CHECKROW_UNROLL _Pragma("clang loop unroll(full)")
#else
#define CHECKROW_UNROLL _Pragma("GCC unroll 16")
#endif

CHECKROW_CANONICAL_BEGIN

namespace checkrow::inline v0::detail::neon {

struct floats {
  float32x4_t low, high;
};
struct ints {  // unsigned: sums wrap around
  uint32x4_t low, high;
};
inline constexpr std::size_t lanes = 8;

CHECKROW_LANES floats fill(float value) noexcept { return {vdupq_n_f32(value), vdupq_n_f32(value)}; }
CHECKROW_LANES ints fill(int value) noexcept {
  const uint32x4_t all = vdupq_n_u32(static_cast<unsigned>(value));
  return {all, all};
}
CHECKROW_LANES ints bits_of(floats a) noexcept {
  return {vreinterpretq_u32_f32(a.low), vreinterpretq_u32_f32(a.high)};
}
CHECKROW_LANES floats float_of(ints a) noexcept {
  return {vreinterpretq_f32_u32(a.low), vreinterpretq_f32_u32(a.high)};
}
CHECKROW_LANES ints ints_of(uint8x16_t low, uint8x16_t high) noexcept {
  return {vreinterpretq_u32_u8(low), vreinterpretq_u32_u8(high)};
}
CHECKROW_LANES ints ints_of(int32x4_t low, int32x4_t high) noexcept {
  return {vreinterpretq_u32_s32(low), vreinterpretq_u32_s32(high)};
}
CHECKROW_LANES int32x4_t words(uint32x4_t a) noexcept { return vreinterpretq_s32_u32(a); }
CHECKROW_LANES uint8x16_t bytes(uint32x4_t a) noexcept { return vreinterpretq_u8_u32(a); }
CHECKROW_LANES uint16x8_t halves(uint32x4_t a) noexcept { return vreinterpretq_u16_u32(a); }

CHECKROW_LANES ints load_ints(const std::byte* from) noexcept {
  const auto* const some = reinterpret_cast<const std::uint8_t*>(from);
  return ints_of(vld1q_u8(some), vld1q_u8(some + 16));
}
CHECKROW_LANES floats load(const std::byte* from) noexcept { return float_of(load_ints(from)); }
CHECKROW_LANES void store(std::byte* to, ints a) noexcept {
  vst1q_u8(reinterpret_cast<std::uint8_t*>(to), bytes(a.low));
  vst1q_u8(reinterpret_cast<std::uint8_t*>(to + 16), bytes(a.high));
}
CHECKROW_LANES void store(std::byte* to, floats a) noexcept { store(to, bits_of(a)); }
/// From memory, and to memory, that is likely in no cache.
CHECKROW_LANES floats load_far(const std::byte* from) noexcept { return load(from); }
CHECKROW_LANES void store_far(std::byte* to, floats a) noexcept { store(to, a); }
/// (There is stnp, but cores see a stream of whole lines by themselves.)
CHECKROW_LANES void stream(std::byte* to, floats a) noexcept { store(to, a); }

// One instruction a register.
#define CHECKROW_OPERATION(instruction, result, a, b)                                        \
  asm(instruction " %0.4s, %1.4s, %2.4s" : "=w"((result).low) : "w"((a).low), "w"((b).low)); \
  asm(instruction " %0.4s, %1.4s, %2.4s" : "=w"((result).high) : "w"((a).high), "w"((b).high))

CHECKROW_LANES floats add(floats a, floats b) noexcept {
  CHECKROW_OPERATION("fadd", a, a, b);
  return a;
}
CHECKROW_LANES floats subtract(floats a, floats b) noexcept {
  CHECKROW_OPERATION("fsub", a, a, b);
  return a;
}
CHECKROW_LANES floats multiply(floats a, floats b) noexcept {
  CHECKROW_OPERATION("fmul", a, a, b);
  return a;
}
CHECKROW_LANES floats divide(floats a, floats b) noexcept {
  CHECKROW_OPERATION("fdiv", a, a, b);
  return a;
}
/// RN(a * b + c).
CHECKROW_LANES floats fused(floats a, floats b, floats c) noexcept {
  asm("fmla %0.4s, %1.4s, %2.4s" : "+w"(c.low) : "w"(a.low), "w"(b.low));
  asm("fmla %0.4s, %1.4s, %2.4s" : "+w"(c.high) : "w"(a.high), "w"(b.high));
  return c;
}
/// Half to even; 0 for NaN, and else saturated.
CHECKROW_LANES ints round(floats a) noexcept {
  return ints_of(vcvtnq_s32_f32(a.low), vcvtnq_s32_f32(a.high));
}
CHECKROW_LANES floats to_floats(ints a) noexcept {
  return {vcvtq_f32_s32(words(a.low)), vcvtq_f32_s32(words(a.high))};
}

CHECKROW_LANES ints add(ints a, ints b) noexcept {
  return {vaddq_u32(a.low, b.low), vaddq_u32(a.high, b.high)};
}
CHECKROW_LANES ints both(ints a, ints b) noexcept {
  return {vandq_u32(a.low, b.low), vandq_u32(a.high, b.high)};
}
CHECKROW_LANES ints either(ints a, ints b) noexcept {
  return {vorrq_u32(a.low, b.low), vorrq_u32(a.high, b.high)};
}
CHECKROW_LANES ints greater(ints a, ints b) noexcept {
  return ints_of(vmaxq_s32(words(a.low), words(b.low)), vmaxq_s32(words(a.high), words(b.high)));
}
template <int N>
CHECKROW_LANES ints shift_left(ints a) noexcept {
  return {vshlq_n_u32(a.low, N), vshlq_n_u32(a.high, N)};
}
template <int N>
CHECKROW_LANES ints shift_right(ints a) noexcept {
  return {vshrq_n_u32(a.low, N), vshrq_n_u32(a.high, N)};
}
template <int N>
CHECKROW_LANES ints shift_right_signed(ints a) noexcept {
  return ints_of(vshrq_n_s32(words(a.low), N), vshrq_n_s32(words(a.high), N));
}
CHECKROW_LANES ints lane_numbers() noexcept {
  const uint32x4_t low = {0, 1, 2, 3}, high = {4, 5, 6, 7};
  return {low, high};
}
/// A bit for each lane of a mask.
CHECKROW_LANES unsigned bits_of_mask(ints mask) noexcept {
  const uint16x8_t bits = {1, 2, 4, 8, 16, 32, 64, 128};
  return vaddvq_u16(vandq_u16(vuzp1q_u16(halves(mask.low), halves(mask.high)), bits));
}
/// A bit for each lane that is at most `limit`, unsigned.
CHECKROW_LANES unsigned at_most(ints a, unsigned limit) noexcept {
  const uint32x4_t most = vdupq_n_u32(limit);
  return bits_of_mask({vcleq_u32(a.low, most), vcleq_u32(a.high, most)});
}

// ---------------------------------------------------------------------------------- rows, lane by lane

/// The smaller, and the greater; NaN where one is NaN. Zeros of either sign are the same. And of neighbours:
/// those of a, then those of b.
struct lesser_of {
  CHECKROW_LANES static floats of(floats a, floats b) noexcept {
    CHECKROW_OPERATION("fmin", a, a, b);
    return a;
  }
  CHECKROW_LANES static float32x4_t of_neighbours(float32x4_t a, float32x4_t b) noexcept {
    asm("fminp %0.4s, %0.4s, %1.4s" : "+w"(a) : "w"(b));
    return a;
  }
};
struct greater_of {
  CHECKROW_LANES static floats of(floats a, floats b) noexcept {
    CHECKROW_OPERATION("fmax", a, a, b);
    return a;
  }
  CHECKROW_LANES static float32x4_t of_neighbours(float32x4_t a, float32x4_t b) noexcept {
    asm("fmaxp %0.4s, %0.4s, %1.4s" : "+w"(a) : "w"(b));
    return a;
  }
};
#undef CHECKROW_OPERATION

/// There is nothing to watch: a row's NaN becomes its range, and such a range has no grid.
struct nan_watch {
  CHECKROW_LANES nan_watch() noexcept {}
  CHECKROW_LANES void watch(floats) noexcept {}
  CHECKROW_LANES void watch(floats, floats, floats, floats) noexcept {}
  [[nodiscard]] CHECKROW_LANES bool found() const noexcept { return false; }
};

/// Reduces 8 vectors at once, of which halves have been combined already: lane i of the result is the
/// reduction of vector i.
template <class Op>
CHECKROW_LANES floats of_neighbours(floats a, floats b) noexcept {
  if constexpr (requires { Op::of_neighbours(a.low, a.high); })
    return {Op::of_neighbours(a.low, a.high), Op::of_neighbours(b.low, b.high)};
  else
    return Op::of({vuzp1q_f32(a.low, a.high), vuzp1q_f32(b.low, b.high)},
                  {vuzp2q_f32(a.low, a.high), vuzp2q_f32(b.low, b.high)});
}
template <class Op>
CHECKROW_LANES floats reduce_pairs(const floats* a) noexcept {
  return of_neighbours<Op>(of_neighbours<Op>(a[0], a[1]), of_neighbours<Op>(a[2], a[3]));
}
/// Halves, since all that matters is which elements meet.
CHECKROW_LANES floats unpack_low(floats a, floats b) noexcept { return {a.low, b.low}; }
CHECKROW_LANES floats unpack_high(floats a, floats b) noexcept { return {a.high, b.high}; }

// The elements of a block, and its codes.
// clang-format off
#include <checkrow/detail/blocks_neon.inc>

// In this order.
#include <checkrow/detail/lanes_encode.inc>
#include <checkrow/detail/lanes_decode.inc>
#include <checkrow/detail/refit_neon.inc>
#include <checkrow/detail/lanes_refit.inc>
#include <checkrow/detail/small_neon.inc>
#include <checkrow/detail/lanes_small.inc>
// clang-format on

}  // namespace checkrow::inline v0::detail::neon

CHECKROW_CANONICAL_END

#undef CHECKROW_UNROLL
#undef CHECKROW_LANES_ENTRY
#undef CHECKROW_LANES

#endif
