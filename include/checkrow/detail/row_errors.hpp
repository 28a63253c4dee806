// The error of encoded rows: how far what a reader gets is from what the trainer had.
#pragma once

#include <algorithm>
#include <checkrow/detail/small_floats.hpp>
#include <checkrow/element.hpp>
#include <checkrow/format/manifest.hpp>
#include <cstring>
#include <vector>

namespace checkrow::inline v0::detail {

/// The relative errors of some rows of one column.
struct error_sums {
  std::uint64_t rows = 0;
  double sum = 0;
  double largest = 0;
  std::uint64_t worst_row = 0;  ///< its id; the smallest of equals

  void add(double error, std::uint64_t id) noexcept { add(error_sums{1, error, error, id}); }
  void add(const error_sums& more) noexcept {
    if (more.rows == 0) return;
    if (rows == 0 || more.largest > largest || (more.largest == largest && more.worst_row < worst_row)) {
      largest = more.largest;
      worst_row = more.worst_row;
    }
    rows += more.rows;
    sum += more.sum;
  }
};

/// Elements whose distance means something.
[[nodiscard]] inline bool has_error(const column_shape& shape) noexcept {
  switch (shape.element) {
    case element_type::float32:
      return shape.element_bytes == 4;
    case element_type::float64:
      return shape.element_bytes == 8;
    case element_type::float16:
    case element_type::bfloat16:
      return shape.element_bytes == 2;
    default:
      return false;
  }
}

CHECKROW_CANONICAL_BEGIN

/// Sums over a row: of the squared elements, and of their squared changes. Element d goes to partial d mod
/// 32, so that vectors give the same sum.
struct squared_sums {
  static constexpr std::size_t partials = 32;
  double elements[partials] = {};
  double changes[partials] = {};

  /// All partials: 16 to 31 are added to 0 to 15, then 8 to 15 to 0 to 7, and so on.
  [[nodiscard]] static double total(double* of) noexcept {
    for (std::size_t half = partials / 2; half > 0; half /= 2)
      for (std::size_t k = 0; k < half; ++k) of[k] += of[k + half];
    return of[0];
  }
};

[[gnu::always_inline]] inline void add_change(squared_sums& sums, std::size_t k, double before,
                                              double after) noexcept {
  sums.elements[k] += before * before;
  sums.changes[k] += (after - before) * (after - before);
}

/// Up to 32 elements; a loop of its own for the usual type, since the compiler makes vectors of it.
[[gnu::noinline]] inline void add_squares(squared_sums& sums, const float_row& row,
                                          const float_row& again) noexcept {
  for (std::size_t k = 0; k < row.width; ++k)
    add_change(sums, k, static_cast<double>(row[k]), static_cast<double>(again[k]));
}

[[nodiscard]] inline double element_at(element_type type, const std::byte* at) noexcept {
  if (type == element_type::float64) {
    double element;
    std::memcpy(&element, at, sizeof element);
    return element;
  }
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return static_cast<double>(type == element_type::float16 ? widen_half(bits) : widen_bfloat16(bits));
}

/// ||again - row|| / ||row||; 0 where no byte changed, 1 where that is no number. has_error(shape).
[[nodiscard, gnu::noinline]] inline double relative_error(const column_shape& shape, const std::byte* row,
                                                          const std::byte* again) noexcept {
  if (std::memcmp(row, again, shape.row_bytes()) == 0) return 0;
  squared_sums sums;
  if (shape.element == element_type::float32)
    for (std::size_t i = 0; i < shape.width; i += squared_sums::partials)
      add_squares(sums, float_row{row, shape.width}.block(i, squared_sums::partials),
                  float_row{again, shape.width}.block(i, squared_sums::partials));
  else
    for (std::size_t i = 0; i < shape.width; ++i)
      add_change(sums, i % squared_sums::partials, element_at(shape.element, row + i * shape.element_bytes),
                 element_at(shape.element, again + i * shape.element_bytes));
  const double elements = squared_sums::total(sums.elements), changes = squared_sums::total(sums.changes);
  if (__builtin_bit_cast(std::uint64_t, changes) << 1 == 0) return 0;  // -0 became +0
  constexpr std::uint64_t infinite = 0x7ff0000000000000u;
  const bool number = __builtin_bit_cast(std::uint64_t, elements) < infinite &&
                      __builtin_bit_cast(std::uint64_t, changes) < infinite && elements > 0;
  return number ? __builtin_sqrt(changes / elements) : 1;
}

CHECKROW_CANONICAL_END

/// The errors of a save, chunk by chunk in order, for its manifest.
class error_totals {
 public:
  /// `columns`: one a column, or none where no column loses anything.
  void add(std::uint32_t table, const std::vector<error_sums>& columns) {
    for (std::uint32_t c = 0; c < columns.size(); ++c) {
      if (columns[c].rows == 0) continue;
      const auto here = std::find_if(totals_.rbegin(), totals_.rend(),
                                     [&](const one& t) { return t.table == table && t.column == c; });
      (here != totals_.rend() ? *here : totals_.emplace_back(one{table, c, {}})).sums.add(columns[c]);
    }
  }

  /// In order of table and column.
  [[nodiscard]] std::vector<format::column_error> all(std::uint64_t every) const {
    std::vector<format::column_error> out;
    for (const one& t : totals_)
      out.push_back({t.table, t.column, t.sums.rows, every, t.sums.sum / double(t.sums.rows), t.sums.largest,
                     t.sums.worst_row});
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
      return std::pair(a.table, a.column) < std::pair(b.table, b.column);
    });
    return out;
  }

 private:
  struct one {
    std::uint32_t table, column;
    error_sums sums;
  };
  std::vector<one> totals_;
};

}  // namespace checkrow::inline v0::detail
