// Adaptive quantization: a search looks for a range narrower than [min, max] that lowers the row's error.
#pragma once

#include <checkrow/concepts.hpp>
#include <checkrow/detail/greedy_search.hpp>
#include <checkrow/detail/refit_search.hpp>
#include <checkrow/detail/small_section.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace checkrow::inline v0 {

/// Proposes a grid for a row, given its range; invalid where it has none. Only the proposal: whether it is
/// used, and what is written, the codec decides. Must be a function of the row alone, whatever the compiler
/// flags.
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
                                            int codec_bits) const noexcept {
    constexpr int most = 1 << 20;
    const int usual = codec_bits == 8 ? 200 : codec_bits == 4 ? 45 : 25;
    const int count = bins <= 0 ? usual : bins < most ? bins : most;
    const detail::trial_losses engine = detail::losses_of_engine();
    return detail::greedy_grid(row, range, codec_bits, count, detail::greedy_turns(count, ratio),
                               engine != nullptr ? engine : detail::plain_losses);
  }
};

/// Least squares from two starts, the default: errors at or below greedy's at a small part of its time.
struct refit {
  static constexpr std::uint16_t id = 5;
  static constexpr std::string_view name = "adaptive refit";
  static constexpr std::uint32_t version = 1;

  [[nodiscard]] detail::narrow_grid propose(const detail::float_row& row, const detail::row_range& range,
                                            int codec_bits) const noexcept {
    return detail::refit_grid(row, range, codec_bits);
  }
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
    const bool small = shape.element_bytes == 2;
    detail::batch_encoder batches = nullptr;
    if constexpr (std::same_as<Search, refit>)
      batches = small ? detail::small_encoder_of<Bits, detail::batch_kind::refit>(shape.width)
                      : detail::batch_encoder_of<Bits, detail::batch_kind::refit>(shape.width);
    if (small)
      return detail::encode_small_section(shape, rows, n, detail::row_grid::asymmetric, Bits, out, batches,
                                          {this, &grid_as_floats});
    return detail::encode_section<Bits>(
        shape, rows, n, detail::row_grid::asymmetric, out,
        [this](const detail::float_row& row) noexcept { return plan(row); }, batches);
  }

  [[nodiscard]] bool decode(const column_shape& shape, std::span<const std::byte> bytes, std::size_t n,
                            row_span rows) const noexcept {
    constexpr auto grid = detail::row_grid::asymmetric;
    if (!accepts(shape)) return false;
    if (shape.element_bytes == 2) return detail::decode_small_section(shape, bytes, n, grid, Bits, rows);
    return detail::decode_section<Bits>(shape, bytes, n, grid, rows, detail::batch_decoder_of<Bits>());
  }

 private:
  /// For rows of half and bfloat16: the grid that the row would have as float32.
  [[nodiscard]] static detail::narrow_grid grid_as_floats(const void* codec,
                                                          const detail::float_row& row) noexcept {
    return static_cast<const adaptive*>(codec)->plan(row).narrow;
  }

  /// The min/max plan, with the searched grid in it where the two rules allow: see row_arithmetic.hpp.
  [[nodiscard]] detail::row_plan plan(const detail::float_row& row) const noexcept {
    detail::row_plan plan = detail::plan_asymmetric(row, Bits);
    if (plan.kind != detail::row_class::narrow || detail::on_grid(row, plan.narrow, Bits)) return plan;
    const detail::narrow_grid found = search.propose(row, plan.range, Bits);
    if (detail::eligible(found, plan.range, Bits)) plan.narrow = found;
    return plan;
  }
};

static_assert(row_codec<adaptive<4>>);
static_assert(row_codec<adaptive<2, greedy>>);

}  // namespace checkrow::inline v0
