// What a checkpointer saves: registered tables, dense parameters and states, each list in order of name.
#pragma once

#include <algorithm>
#include <checkrow/detail/erased.hpp>
#include <checkrow/detail/registered_items.hpp>
#include <checkrow/format/manifest.hpp>
#include <checkrow/table.hpp>
#include <memory>

namespace checkrow::inline v0::detail {

struct registered_model {
  model_tables tables;
  std::vector<registered_dense> dense;
  std::vector<registered_state> states;

  [[nodiscard]] std::uint64_t rows() const noexcept {
    std::uint64_t all = 0;
    for (const auto& table : tables) all += table->rows;
    return all;
  }
};

/// Bytes of everything as it lies in memory: what a checkpoint without any of our means would write.
[[nodiscard]] inline std::uint64_t bytes_in_memory(const registered_model& model) noexcept {
  std::uint64_t all = 0;
  for (const auto& table : model.tables)
    for (const auto& column : table->columns) all += table->rows * column.shape.row_bytes();
  for (const auto& dense : model.dense) all += dense.bytes();
  return all;
}

[[nodiscard]] inline bool is_utf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t more = lead < 0x80   ? 0
                             : lead < 0xc2 ? 9
                             : lead < 0xe0 ? 1
                             : lead < 0xf0 ? 2
                             : lead < 0xf5 ? 3
                                           : 9;
    if (more > text.size() - i - 1 || lead < 0x20 || lead == 0x7f) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      const bool overlong = k == 1 && ((lead == 0xe0 && next < 0xa0) || (lead == 0xf0 && next < 0x90));
      const bool beyond = k == 1 && ((lead == 0xed && next > 0x9f) || (lead == 0xf4 && next > 0x8f));
      if ((next & 0xc0) != 0x80 || overlong || beyond) return false;
    }
    i += more + 1;
  }
  return true;
}

/// Names of tables, columns, dense parameters and states: UTF-8 without control characters, 1 to 255 bytes.
[[nodiscard]] inline status check_name(const char* of, const std::string& name) {
  if (!name.empty() && name.size() <= 255 && is_utf8(name)) return {};
  return make_error(error_kind::misuse, {"not a name for a ", of}, {"\"", name, "\""},
                    {"use 1 to 255 bytes of UTF-8 without control characters"});
}

/// Inserts in order of name; false where the name is taken.
template <class List, class Item>
[[nodiscard]] bool insert_by_name(List& list, Item item, auto&& name_of) {
  const auto at = std::lower_bound(list.begin(), list.end(), item,
                                   [&](const auto& a, const auto& b) { return name_of(a) < name_of(b); });
  if (at != list.end() && name_of(*at) == name_of(item)) return false;
  list.insert(at, std::move(item));
  return true;
}

[[nodiscard]] inline error name_taken(const char* of, const std::string& name) {
  return make_error(error_kind::misuse, {"a ", of, " of this name is registered already"}, {name},
                    {"give each one a name of its own"});
}

/// One column of a table of `rows` rows: the width follows from the size where it was not given.
[[nodiscard]] inline result<registered_column> register_column(const column& from, std::uint64_t rows,
                                                               const std::string& table) {
  const std::string where = "table " + table + ", column " + from.name;
  if (status named = check_name("column", from.name); !named) return std::move(named).error();
  registered_column out{from.name, from.shape, from.data, from.stride, from.codec};
  if (out.shape.width == 0) {
    const std::uint64_t width = rows == 0 ? 1 : from.elements / rows;
    if (width == 0 || width > 0xffffffff)
      return make_error(error_kind::misuse,
                        {"a column of ", from.elements, " elements cannot have ", rows, " rows"}, {where},
                        {"its size has to be the table's rows times its width"});
    out.shape.width = std::uint32_t(width);
  }
  if (from.elements != rows * out.shape.width)
    return make_error(
        error_kind::misuse,
        {"a column of ", from.elements, " elements does not fit ", rows, " rows of width ", out.shape.width},
        {where}, {"its size has to be the table's rows times its width"});
  if (out.stride == 0) out.stride = out.shape.row_bytes();
  if (out.stride < out.shape.row_bytes())
    return make_error(error_kind::misuse, {"the stride is smaller than a row"}, {where},
                      {"give the distance of two rows in bytes"});
  return out;
}

/// The table as registered: weights first, the other columns in order of name.
[[nodiscard]] inline result<registered_table> register_table(std::string name, const column& weights,
                                                             std::uint64_t rows,
                                                             const table_options& options) {
  if (status named = check_name("table", name); !named) return std::move(named).error();
  registered_table out{std::move(name), rows, {}, options.codec, {}};
  std::vector<registered_column> others;
  for (const column& described : options.columns) {
    auto registered = register_column(described, rows, out.name);
    if (!registered) return std::move(registered).error();
    if (described.name == weights.name ||
        !insert_by_name(others, *std::move(registered),
                        [](const registered_column& c) -> const std::string& { return c.name; }))
      return name_taken("column", "table " + out.name + ", column " + described.name);
  }
  auto first = register_column(weights, rows, out.name);
  if (!first) return std::move(first).error();
  out.columns.push_back(*std::move(first));
  for (registered_column& other : others) out.columns.push_back(std::move(other));
  return out;
}

[[nodiscard]] inline format::table_schema schema_of(const registered_table& table, codec_choice codec) {
  format::table_schema out{.name = table.name, .rows = table.rows, .codec = codec, .columns = {}};
  for (const registered_column& column : table.columns)
    out.columns.push_back({column.name, column.shape, column.codec});
  const bool quantized = table.columns[0].shape.width > 1;
  out.columns[0].codec = quantized ? codec : stored_exactly;
  return out;
}

[[nodiscard]] inline format::dense_schema schema_of(const registered_dense& dense) {
  return {dense.name, dense.element, dense.element_bytes, dense.count};
}

[[nodiscard]] inline status add(registered_model& model, registered_dense dense) {
  if (status named = check_name("dense parameter", dense.name); !named) return named;
  const std::string name = dense.name;
  if (insert_by_name(
          model.dense, std::move(dense), [](const auto& d) -> const auto& { return d.name; }))
    return {};
  return name_taken("dense parameter", name);
}

[[nodiscard]] inline status add(registered_model& model, registered_state state) {
  if (status named = check_name("state", state.name); !named) return named;
  const std::string name = state.name;
  if (insert_by_name(
          model.states, std::move(state), [](const auto& s) -> const auto& { return s.name; }))
    return {};
  return name_taken("state", name);
}

}  // namespace checkrow::inline v0::detail
