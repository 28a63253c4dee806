// How one row of half or bfloat16 is quantized. Its grid is two values of its own type, low and high:
//
//   step = RN(RN(high - low) * RN(1 / top)),  y = the type's nearest of fma(q, step, low),  +0 for -0
//
// What makes it idempotent: high is the value that code `top` gives (a fixed point); the row's least and
// greatest element give low and high back; and a code is the one that its own value gets. Where a row's grid
// or codes lack one of these, the row is raw.
#pragma once

#include <checkrow/detail/row_arithmetic.hpp>
#include <checkrow/detail/small_floats.hpp>

namespace checkrow::inline v0::detail {

CHECKROW_CANONICAL_BEGIN

struct small_grid {
  float low = 0;
  float high = 0;
  float step = 0;
  float inverse = 0;  ///< RN(1 / step), or 0
  float top = 0;
  small_type type = small_type::half;
  bool valid = false;
};

/// A code, as a float; and the bits of a code's value.
[[nodiscard, gnu::always_inline]] inline float small_code(const small_grid& g, float x) noexcept {
  return round_even(clamp_code((x - g.low) * g.inverse, g.top));
}
[[nodiscard, gnu::always_inline]] inline std::uint32_t small_element(const small_grid& g, float q,
                                                                     bool fma) noexcept {
  return narrow_bits(g.type, fused(q, g.step, g.low, fma));
}

/// low and high as they are.
[[nodiscard, gnu::noinline]] inline small_grid stored_small_grid(small_type type, float low, float high,
                                                                 int bits) noexcept {
  small_grid g{low, high, 0, 0, static_cast<float>(top_code(bits)), type, true};
  g.step = (high - low) * (1.0f / g.top);
  if (g.step > 0.0f) g.inverse = 1.0f / g.step;
  return g;
}

/// The grid of the range [low, high], both of the type and not -0; symmetric: low is -high. Invalid where
/// high does not come to rest, or the final range is one whose arithmetic could leave the normal numbers.
[[nodiscard, gnu::noinline]] inline small_grid small_grid_of(small_type type, float low, float high, int bits,
                                                             bool symmetric) noexcept {
  small_grid g;
  for (int turn = 0; turn < 4; ++turn) {
    g = stored_small_grid(type, low, high, bits);
    const float reached = rounded_to(type, fused(g.top, g.step, low));
    g.valid = reached == high;
    if (g.valid) break;
    high = reached;
    if (symmetric) low = 0.0f - high;
  }
  constexpr std::uint32_t greatest = (127u + 126u) << 23;
  const std::uint32_t a = bits_of(low) & 0x7fffffffu, b = bits_of(high) & 0x7fffffffu;
  const std::uint32_t magnitude = a > b ? a : b, range = bits_of(high - low);
  g.valid = g.valid && magnitude < greatest && magnitude >= least_magnitude &&
            (range == 0 || (range >= least_magnitude && range < infinite_magnitude));
  return g;
}

/// Do the row's least and greatest element decode to the ends of the grid?
[[nodiscard, gnu::noinline]] inline bool reaches_ends(const small_grid& g, const row_range& range,
                                                      bool symmetric) noexcept {
  const float least = widen(g.type, small_element(g, small_code(g, range.min), false));
  const float greatest = widen(g.type, small_element(g, small_code(g, range.max), false));
  if (symmetric) return (0.0f - least > greatest ? 0.0f - least : greatest) == g.high;
  return least == g.low && greatest == g.high;
}

// ------------------------------------------------------------------------------- blocks of up to 64 elements

// Each loop once, as in row_blocks.hpp: with the FMA instruction where the CPU has it, and without. `type` is
// the grid's, constant where the loop is compiled.

[[gnu::always_inline]] inline bool small_codes_body(const float_row& row, const small_grid& grid,
                                                    std::uint8_t* codes, small_type type, bool fma) noexcept {
  small_grid g = grid;
  g.type = type;
  float again[block_elements];
  std::uint32_t changed = 0;
  for (std::size_t i = 0; i < row.width; ++i) {
    const std::uint32_t y = small_element(g, small_code(g, row[i]), fma);
    again[i] = small_code(g, widen(type, y));
    changed |= y ^ small_element(g, again[i], fma);
  }
  for (std::size_t i = 0; i < row.width; ++i)
    codes[i] = static_cast<std::uint8_t>(bits_of(again[i] + 12582912.0f));
  return changed == 0;
}
[[gnu::always_inline]] inline void decode_small_body(const std::uint8_t* codes, std::size_t count,
                                                     const small_grid& grid, std::byte* out, small_type type,
                                                     bool fma) noexcept {
  small_grid g = grid;
  g.type = type;
  std::uint32_t elements[block_elements];
  for (std::size_t i = 0; i < count; ++i)
    elements[i] = small_element(g, static_cast<float>(std::int32_t{codes[i]}), fma);
  for (std::size_t i = 0; i < count; ++i) {
    const auto element = static_cast<std::uint16_t>(elements[i]);
    __builtin_memcpy(out + 2 * i, &element, 2);
  }
}
[[gnu::always_inline]] inline row_range widen_row_body(const std::byte* from, std::size_t width,
                                                       std::byte* to, small_type type) noexcept {
  std::int32_t least = 0x7fffffff, greatest = -0x7fffffff - 1;
  for (std::size_t i = 0; i < width; ++i) {
    std::uint16_t bits;
    __builtin_memcpy(&bits, from + 2 * i, 2);
    const float element = widen(type, bits);
    __builtin_memcpy(to + 4 * i, &element, 4);
    const std::int32_t key = order_key(static_cast<std::int32_t>(bits_of(element)));
    least = key < least ? key : least;
    greatest = key > greatest ? key : greatest;
  }
  const auto min = static_cast<std::uint32_t>(order_key(least));
  const auto max = static_cast<std::uint32_t>(order_key(greatest));
  const std::uint32_t a = min & 0x7fffffffu, b = max & 0x7fffffffu;
  return {float_of(min), float_of(max), a > b ? a : b};
}

#define CHECKROW_SMALL_LOOPS(suffix, attributes, fma)                                                      \
  attributes inline bool small_codes##suffix(const float_row& row, const small_grid& g,                    \
                                             std::uint8_t* codes) noexcept {                               \
    return g.type == small_type::half ? small_codes_body(row, g, codes, small_type::half, fma)             \
                                      : small_codes_body(row, g, codes, small_type::bfloat16, fma);        \
  }                                                                                                        \
  attributes inline void decode_small##suffix(const std::uint8_t* codes, std::size_t count,                \
                                              const small_grid& g, std::byte* out) noexcept {              \
    if (g.type == small_type::half) return decode_small_body(codes, count, g, out, small_type::half, fma); \
    decode_small_body(codes, count, g, out, small_type::bfloat16, fma);                                    \
  }                                                                                                        \
  attributes inline row_range widen_row##suffix(small_type type, const std::byte* from, std::size_t width, \
                                                std::byte* to) noexcept {                                  \
    return type == small_type::half ? widen_row_body(from, width, to, small_type::half)                    \
                                    : widen_row_body(from, width, to, small_type::bfloat16);               \
  }
#define CHECKROW_PLAIN [[gnu::noinline]]
CHECKROW_SMALL_LOOPS(_plain, CHECKROW_PLAIN, CHECKROW_FMA)
#if CHECKROW_FMA_AT_RUN_TIME
#define CHECKROW_WITH_FMA [[gnu::noinline, gnu::target("avx2,fma")]]
CHECKROW_SMALL_LOOPS(_fma, CHECKROW_WITH_FMA, true)
#undef CHECKROW_WITH_FMA
#define CHECKROW_CHOOSE(name, ...) (cpu_has_fma() ? name##_fma(__VA_ARGS__) : name##_plain(__VA_ARGS__))
#else
#define CHECKROW_CHOOSE(name, ...) name##_plain(__VA_ARGS__)
#endif
#undef CHECKROW_PLAIN
#undef CHECKROW_SMALL_LOOPS

/// Codes; false where one's value would get another code, and that another value.
[[nodiscard]] inline bool small_codes(const float_row& row, const small_grid& grid,
                                      std::uint8_t* codes) noexcept {
  return CHECKROW_CHOOSE(small_codes, row, grid, codes);
}
[[gnu::always_inline]] inline void decode_small_block(const std::uint8_t* codes, std::size_t count,
                                                      const small_grid& grid, std::byte* out) noexcept {
  CHECKROW_CHOOSE(decode_small, codes, count, grid, out);
}
/// A row of that type as floats; its range.
[[nodiscard]] inline row_range widen_row(small_type type, const std::byte* from, std::size_t width,
                                         std::byte* to) noexcept {
  return CHECKROW_CHOOSE(widen_row, type, from, width, to);
}
#undef CHECKROW_CHOOSE

/// Is every element the value of its code? (-0 counts as 0.)
[[nodiscard, gnu::noinline]] inline bool on_small_grid(const float_row& row, const small_grid& g) noexcept {
  for (std::size_t i = 0; i < row.width; ++i)
    if (widen(g.type, small_element(g, small_code(g, row[i]), CHECKROW_FMA)) != row[i]) return false;
  return true;
}

CHECKROW_CANONICAL_END

}  // namespace checkrow::inline v0::detail
