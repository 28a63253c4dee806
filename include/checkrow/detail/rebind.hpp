// Puts a registered table onto other memory.
#pragma once

#include <checkrow/detail/save_path.hpp>

namespace checkrow::inline v0::detail {

/// With the scopes closed and no save running. On an error nothing has changed.
[[nodiscard]] inline status rebind_table(save_path& path, model_table& table, const column& weights,
                                         const std::vector<column>& others) {
  const auto misuse = [&](words what, const char* next) {
    return make_error(error_kind::misuse, what, {"table ", table.name}, {next});
  };
  const std::uint32_t width = table.columns[0].shape.width;
  if (weights.elements % width != 0)
    return misuse({weights.elements, " weights are no rows of dim ", width},
                  "the weights' size has to be rows times dim");
  auto described = register_table(table.name, weights, weights.elements / width, {others, table.codec});
  if (!described) return std::move(described).error();
  if (described->rows < table.rows)
    return misuse({"it has ", table.rows, " rows, the new memory ", described->rows},
                  "a table keeps its rows; register a smaller one with another checkpointer");
  const auto same = [](const registered_column& a, const registered_column& b) {
    return a.name == b.name && a.shape == b.shape;
  };
  if (!std::equal(table.columns.begin(), table.columns.end(), described->columns.begin(),
                  described->columns.end(), same))
    return misuse({"the new memory has other columns"},
                  "give the columns that the table was registered with");
  if (described->rows > table.rows) {
    if (!table.grow(described->rows))
      return make_error(error_kind::unsupported, {"this tracker cannot grow"}, {"table ", table.name},
                        {"use bitmap, or give the tracker's table_rows a grow(rows)"});
    path.parent = nullptr;  // a restore tells a whole base by its rows: so the next save is one
  }
  table.rows = described->rows;
  for (std::size_t c = 0; c < table.columns.size(); ++c)  // codecs stay those of the registration
    described->columns[c].codec = table.columns[c].codec;
  table.columns = std::move(described->columns);
  return {};
}

}  // namespace checkrow::inline v0::detail
