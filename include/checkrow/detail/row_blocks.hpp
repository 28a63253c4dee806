// The inner loops over the elements of a row, in blocks of up to 64, for grids y = (offset + q * G) * step /
// G.
#pragma once

#include <checkrow/detail/canonical.hpp>
#include <cstddef>
#include <cstdint>

// The loops exist twice where FMA is a matter of the CPU: with the instruction, and in double arithmetic.
#if defined(__FMA__) || defined(__aarch64__)
#define CHECKROW_FMA 1
#else
#define CHECKROW_FMA 0
#endif
#if !defined(CHECKROW_FMA_AT_RUN_TIME)  // tests define it as 0, to run the other form on any CPU
#if defined(__x86_64__) && !CHECKROW_FMA
#define CHECKROW_FMA_AT_RUN_TIME 1
#else
#define CHECKROW_FMA_AT_RUN_TIME 0
#endif
#endif

namespace checkrow::inline v0::detail {

inline constexpr std::size_t block_elements = 64;

CHECKROW_CANONICAL_BEGIN

/// A grid in the form that the loops want. q = clamp(rint(fma(x, inverse, shift)), 0, top);
/// y = (offset + q * granularity) * unit, an exact product.
struct block_grid {
  float inverse;    ///< RN(1 / step)
  float shift;      ///< -offset / granularity, exact
  float top;        ///< 2^bits - 1
  float unit;       ///< step / granularity, exact
  int offset;       ///< |offset + q * granularity| <= 2^14
  int granularity;  ///< a power of two
};

/// A trial of the greedy search: a grid from `low` up.
struct block_trial {
  float low;
  float minus_step;
  float inverse;  ///< RN(1 / step), or 0
  float top;
  float norm;  ///< RN(1 / (max - min)): residuals are scaled before they are squared, else they underflow
};

inline constexpr std::size_t loss_partials = 32;

/// Writes the losses of a row, which has a range, on two trials.
using trial_losses = void (*)(const float_row& row, const block_trial& one, const block_trial& other,
                              float* losses) noexcept;

// ------------------------------------------------------------------------------ the loops, each written once

/// To [0, top], on bits: negative floats are negative integers, and the others have the order of integers.
[[gnu::always_inline]] inline float clamp_code(float value, float top) noexcept {
  auto bits = static_cast<std::int32_t>(bits_of(value));
  const auto limit = static_cast<std::int32_t>(bits_of(top));
  bits = bits < 0 ? 0 : bits;
  bits = bits < limit ? bits : limit;
  return float_of(static_cast<std::uint32_t>(bits));
}

/// RN(a * b + c). The instruction only where there is one: else clang's fast-math turns it into a * b + c.
[[gnu::always_inline]] inline float fused(float a, float b, float c, bool instruction) noexcept {
  if (instruction) return __builtin_fmaf(a, b, c);
  return fused(a, b, c);
}

[[gnu::always_inline]] inline void encode_block_body(const float_row& row, const block_grid& grid,
                                                     std::uint8_t* codes, bool fma) noexcept {
  const block_grid g = grid;
  for (std::size_t i = 0; i < row.width; ++i) {
    codes[i] = round_to_code(clamp_code(fused(row[i], g.inverse, g.shift, fma), g.top));
  }
}

[[gnu::always_inline]] inline bool on_grid_block_body(const float_row& row, const block_grid& grid,
                                                      bool fma) noexcept {
  const block_grid g = grid;
  int off = 0;
  for (std::size_t i = 0; i < row.width; ++i) {
    const float element = row[i];
    const int q = round_to_code(clamp_code(fused(element, g.inverse, g.shift, fma), g.top));
    off |= static_cast<float>(g.offset + q * g.granularity) * g.unit != element ? 1 : 0;
  }
  return off == 0;
}

/// Adds the squared, scaled residual of element d to partial d mod 32: the canonical order.
[[gnu::always_inline]] inline void add_losses_body(const float_row& row, const block_trial& trial,
                                                   float* partials, bool fma) noexcept {
  const block_trial t = trial;
  for (std::size_t first = 0; first < row.width; first += loss_partials) {
    const std::size_t rest = row.width - first;
    const std::size_t lanes = rest < loss_partials ? rest : loss_partials;
    for (std::size_t k = 0; k < lanes; ++k) {
      const float above = row[first + k] - t.low;
      const float q = round_even(clamp_code(above * t.inverse, t.top));
      const float residual = fused(q, t.minus_step, above, fma) * t.norm;
      partials[k] = fused(residual, residual, partials[k], fma);
    }
  }
}

/// Elements as integers: rint(fma(x, scale, shift)), at most 2^15 in magnitude.
[[gnu::always_inline]] inline void units_block_body(const float_row& row, float scale, float shift,
                                                    std::int16_t* units, bool fma) noexcept {
  for (std::size_t i = 0; i < row.width; ++i) {
    units[i] = static_cast<std::int16_t>(static_cast<int>(round_even(fused(row[i], scale, shift, fma))));
  }
}

// ------------------------------------------------------------------------------------ the entries from
// outside

#if CHECKROW_FMA_AT_RUN_TIME
#define CHECKROW_WITH_FMA [[gnu::noinline, gnu::target("avx2,fma")]] inline

[[nodiscard]] inline bool cpu_has_fma() noexcept {
  return __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("avx2") != 0;
}
CHECKROW_WITH_FMA void encode_block_fma(const float_row& row, const block_grid& g,
                                        std::uint8_t* codes) noexcept {
  encode_block_body(row, g, codes, true);
}
CHECKROW_WITH_FMA bool on_grid_block_fma(const float_row& row, const block_grid& g) noexcept {
  return on_grid_block_body(row, g, true);
}
CHECKROW_WITH_FMA void add_losses_fma(const float_row& row, const block_trial& t, float* partials) noexcept {
  add_losses_body(row, t, partials, true);
}
CHECKROW_WITH_FMA void units_block_fma(const float_row& row, float scale, float shift,
                                       std::int16_t* units) noexcept {
  units_block_body(row, scale, shift, units, true);
}
#undef CHECKROW_WITH_FMA
#endif

/// Codes of one block, one a byte.
[[gnu::noinline]] inline void encode_block(const float_row& row, const block_grid& grid,
                                           std::uint8_t* codes) noexcept {
#if CHECKROW_FMA_AT_RUN_TIME
  if (cpu_has_fma()) return encode_block_fma(row, grid, codes);
#endif
  encode_block_body(row, grid, codes, CHECKROW_FMA);
}

/// Does every element of the block lie on the grid already? (-0 counts as 0.)
[[nodiscard, gnu::noinline]] inline bool on_grid_block(const float_row& row,
                                                       const block_grid& grid) noexcept {
#if CHECKROW_FMA_AT_RUN_TIME
  if (cpu_has_fma()) return on_grid_block_fma(row, grid);
#endif
  return on_grid_block_body(row, grid, CHECKROW_FMA);
}

/// Adds a whole row, of any width, to the 32 partial losses of a trial.
[[gnu::noinline]] inline void add_losses(const float_row& row, const block_trial& trial,
                                         float* partials) noexcept {
#if CHECKROW_FMA_AT_RUN_TIME
  if (cpu_has_fma()) return add_losses_fma(row, trial, partials);
#endif
  add_losses_body(row, trial, partials, CHECKROW_FMA);
}

/// One block as integers, see units_block_body.
[[gnu::noinline]] inline void units_block(const float_row& row, float scale, float shift,
                                          std::int16_t* units) noexcept {
#if CHECKROW_FMA_AT_RUN_TIME
  if (cpu_has_fma()) return units_block_fma(row, scale, shift, units);
#endif
  units_block_body(row, scale, shift, units, CHECKROW_FMA);
}

/// Elements of one block from its codes, written at any alignment.
[[gnu::noinline]] inline void decode_block(const std::uint8_t* codes, std::size_t count,
                                           const block_grid& grid, std::byte* out) noexcept {
  const block_grid g = grid;
  for (std::size_t i = 0; i < count; ++i) {
    const float element = static_cast<float>(g.offset + codes[i] * g.granularity) * g.unit;
    __builtin_memcpy(out + 4 * i, &element, 4);
  }
}

/// The same for a WIDE row: y = fma(q, step, low).
[[gnu::noinline]] inline void decode_wide_block(const std::uint8_t* codes, std::size_t count, float step,
                                                float low, std::byte* out) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const float element = fused(static_cast<float>(codes[i]), step, low);
    __builtin_memcpy(out + 4 * i, &element, 4);
  }
}

CHECKROW_CANONICAL_END

}  // namespace checkrow::inline v0::detail
