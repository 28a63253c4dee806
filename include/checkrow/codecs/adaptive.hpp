// Adaptive quantization: a search looks for a range narrower than [min, max] that lowers the row's error.
#pragma once

#include <checkrow/concepts.hpp>
#include <checkrow/detail/row_grid.hpp>
#include <checkrow/detail/sections.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace checkrow::inline v0 {

/// Proposes a grid for a row, given its range; invalid where it has none. Only the proposal: whether it is
/// used, and what is written, the codec decides. Must be a function of the row alone, whatever the compiler
/// flags. (What builds a grid, narrow_from_range() for one, is in detail/row_arithmetic.hpp: include it.)
template <class S>
concept grid_search = std::copyable<S> &&
    requires(const S search, const detail::float_row& row, const detail::row_range& range, int bits) {
  { S::id } -> std::convertible_to<std::uint16_t>;
  { S::name } -> std::convertible_to<std::string_view>;
  { S::version } -> std::convertible_to<std::uint32_t>;
  { search.propose(row, range, bits) }
  noexcept->std::same_as<detail::narrow_grid>;
};

/// The search of the Check-N-Run paper: the range loses one of its `bins` bins a turn, at the end where that
/// costs less, for bins * ratio turns; the best range seen wins. Two passes over the row a turn.
struct greedy {
  static constexpr std::uint16_t id = 4;
  static constexpr std::string_view name = "adaptive greedy";
  static constexpr std::uint32_t version = 1;

  int bins = 0;        ///< 1 to 2^20; 0: 25 at 2 and 3 bits, 45 at 4 bits, 200 at 8
  float ratio = 0.5f;  ///< 0 to 1: how much of the range may be given up

  [[nodiscard]] detail::narrow_grid propose(const detail::float_row& row, const detail::row_range& range,
                                            int codec_bits) const noexcept;
};

/// Least squares from two starts, the default: errors at or below greedy's at a small part of its time.
struct refit {
  static constexpr std::uint16_t id = 5;
  static constexpr std::string_view name = "adaptive refit";
  static constexpr std::uint32_t version = 1;

  [[nodiscard]] detail::narrow_grid propose(const detail::float_row& row, const detail::row_range& range,
                                            int codec_bits) const noexcept;
};

static_assert(grid_search<greedy>);
static_assert(grid_search<refit>);

/// `Bits` bits per element of float32, half and bfloat16 columns, width >= 2. Elements outside the range that
/// was found get its nearest end. Rows whose min/max grid is exact already, and rows far from zero, are
/// stored as uniform does. Encoding a decoded row gives the same bytes again; -0 comes back as +0.
template <int Bits, grid_search Search = refit>
struct adaptive {
  static_assert(Bits == 2 || Bits == 3 || Bits == 4 || Bits == 8,
                "checkrow: adaptive<Bits> comes in 2, 3, 4 and 8 bits per element");

  static constexpr std::uint16_t id = Search::id;
  static constexpr std::uint8_t bits = Bits;
  static constexpr std::string_view name = Search::name;
  static constexpr std::uint32_t version = Search::version;

  [[no_unique_address]] Search search{};

  [[nodiscard]] constexpr bool accepts(const column_shape& shape) const noexcept {
    return detail::quantizable(shape);
  }

  [[nodiscard]] constexpr std::size_t bound(const column_shape& shape, std::size_t n) const noexcept {
    return detail::section_layout(shape, n, Bits).bound();
  }

  /// n < 2^32.
  [[nodiscard]] std::size_t encode(const column_shape& shape, row_view rows, std::size_t n,
                                   std::byte* out) const noexcept {
    constexpr auto batches =
        std::same_as<Search, refit> ? detail::batch_kind::refit : detail::batch_kind::none;
    return detail::encode_section<Bits, batches>(shape, rows, n, grid, out, {&search, &propose});
  }

  [[nodiscard]] bool decode(const column_shape& shape, std::span<const std::byte> bytes, std::size_t n,
                            row_span rows) const noexcept {
    return accepts(shape) && detail::decode_section<Bits>(shape, bytes, n, grid, rows);
  }

 private:
  static constexpr detail::row_grid grid = detail::row_grid::asymmetric;

  [[nodiscard]] static detail::narrow_grid propose(const void* search, const detail::float_row& row,
                                                   const detail::row_range& range, int codec_bits) noexcept {
    return static_cast<const Search*>(search)->propose(row, range, codec_bits);
  }
};

static_assert(row_codec<adaptive<4>>);
static_assert(row_codec<adaptive<2, greedy>>);

}  // namespace checkrow::inline v0

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/adaptive.hpp>
#endif
