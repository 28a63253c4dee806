// Catches updates of rows that were not touched, by hashing a sample of rows from save to save.
#pragma once

#include <checkrow/detail/attempt.hpp>
#include <checkrow/detail/registered.hpp>

namespace checkrow::inline v0::detail {

[[nodiscard]] inline std::uint64_t hash_of_row(const registered_table& table, std::uint64_t row) noexcept {
  std::uint64_t all = 0;
  for (const registered_column& column : table.columns)
    all = all * 0x9e3779b97f4a7c15 +
          format::hash({column.data + row * column.stride, column.shape.row_bytes()});
  return all;
}

/// At a boundary, before the touches are folded: has a sampled row changed that was not touched since?
[[nodiscard]] inline status check_untouched(const model_table& table) {
  for (const auto& [row, hash] : table.audited)
    if (!table.touched(row) && hash_of_row(table, row) != hash)
      return make_error(error_kind::misuse,
                        {"row ", row, " changed since the last save, but was not touched"},
                        {"table ", table.name},
                        {"touch rows before they are updated; touch_all() for updates of every row"});
  return {};
}

/// At the same boundary, after the check: a new sample for the next one.
inline void sample_rows(model_table& table, std::uint64_t count) {
  table.audited.clear();
  if (table.rows == 0) return;
  const format::attempt_id random = new_attempt();
  std::uint64_t state;
  std::memcpy(&state, random.data(), sizeof state);
  for (std::uint64_t i = 0; i < std::min(count, table.rows); ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const std::uint64_t row = count >= table.rows ? i : (state ^ state >> 29) % table.rows;
    table.audited.emplace_back(row, hash_of_row(table, row));
  }
}

}  // namespace checkrow::inline v0::detail
