// Matches a checkpoint's schema with the registered model, before anything is read from a segment.
#pragma once

#include <checkrow/detail/model.hpp>
#include <checkrow/restore.hpp>

namespace checkrow::inline v0::detail {

/// Where one saved table goes: for each saved column the registered one, or null to skip it.
struct table_target {
  std::size_t table = 0;  ///< index in the model
  std::vector<const registered_column*> columns;
};

/// Where everything of a checkpoint goes. Dense parameters and states: index in the model, or absent to skip.
struct restore_plan {
  std::vector<table_target> tables;
  std::vector<std::optional<std::size_t>> dense, states;
};

[[nodiscard]] inline std::string text_of(const column_shape& shape) {
  return std::string(to_string(shape.element)) + " (code " + std::to_string(unsigned(shape.element)) + ", " +
         std::to_string(shape.element_bytes) + " bytes) x " + std::to_string(shape.width);
}

[[nodiscard]] inline error schema_error(words what, words where) {
  return make_error(error_kind::misuse, what, where,
                    {"register the model as it was saved, or restore some columns only with .columns"});
}

template <class List>
[[nodiscard]] std::optional<std::size_t> find_by_name(const List& list, const std::string& name,
                                                      auto&& name_of) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (name_of(list[i]) == name) return i;
  return std::nullopt;
}

class schema_matcher {
 public:
  explicit schema_matcher(const std::vector<std::string>& columns) : only_(columns) {}

  [[nodiscard]] result<restore_plan> match(const format::manifest& saved, const registered_model& model) {
    restore_plan plan;
    for (const auto& table : model.tables)
      if (!find_by_name(
              saved.tables, table->name, [](const auto& t) -> const auto& { return t.name; }))
        return schema_error({"the checkpoint has no such table"}, {"table ", table->name});
    for (const format::table_schema& table : saved.tables) {
      const auto at = find_by_name(
          model.tables, table.name, [](const auto& t) -> const auto& { return t->name; });
      if (!at)
        return schema_error({"the model has no such table, the checkpoint has"}, {"table ", table.name});
      auto target = match_table(table, *model.tables[*at]);
      if (!target) return std::move(target).error();
      target->table = *at;
      plan.tables.push_back(*std::move(target));
    }
    if (status done = match_items("dense parameter", saved.dense, model.dense, plan.dense); !done)
      return std::move(done).error();
    for (std::size_t i = 0; i < saved.dense.size(); ++i)
      if (plan.dense[i] && schema_of(model.dense[*plan.dense[i]]) != saved.dense[i])
        return schema_error({"its size or element type differs: ", saved.dense[i].count,
                             " elements were saved, the model has ", model.dense[*plan.dense[i]].count},
                            {"dense parameter ", saved.dense[i].name});
    if (status done = match_items("state", saved.states, model.states, plan.states); !done)
      return std::move(done).error();
    for (std::size_t i = 0; i < saved.states.size(); ++i)
      if (plan.states[i] &&
          model.states[*plan.states[i]].fixed_bytes.value_or(saved.states[i].bytes) != saved.states[i].bytes)
        return schema_error(
            {"its size differs: ", saved.states[i].bytes, " bytes were saved, the model's has ",
             *model.states[*plan.states[i]].fixed_bytes},
            {"state ", saved.states[i].name});
    return plan;
  }

 private:
  [[nodiscard]] bool wanted(const std::string& column) const {
    return only_.empty() || std::find(only_.begin(), only_.end(), column) != only_.end();
  }

  [[nodiscard]] result<table_target> match_table(const format::table_schema& saved,
                                                 const registered_table& table) const {
    const std::string where = "table " + table.name;
    if (saved.rows != table.rows)
      return schema_error({saved.rows, " rows were saved, the model has ", table.rows}, {where});
    table_target target;
    std::size_t found = 0, asked = 0;
    for (const registered_column& column : table.columns) asked += wanted(column.name) ? 1 : 0;
    for (const format::column_schema& column : saved.columns) {
      const auto at = find_by_name(
          table.columns, column.name, [](const auto& c) -> const auto& { return c.name; });
      if (!at && only_.empty())
        return schema_error({"the model has no such column, the checkpoint has"},
                            {where, ", column ", column.name});
      const bool taken = at && wanted(column.name);
      if (taken && table.columns[*at].shape != column.shape)
        return schema_error(
            {text_of(column.shape), " was saved, the model has ", text_of(table.columns[*at].shape)},
            {where, ", column ", column.name});
      target.columns.push_back(taken ? &table.columns[*at] : nullptr);
      found += taken ? 1 : 0;
    }
    if (found != asked) return schema_error({"the checkpoint lacks a column of the model"}, {where});
    if (found == 0) return schema_error({"none of the columns asked for is in this table"}, {where});
    return target;
  }

  /// Every item of the model has to be saved; what was saved has to be in the model, unless only columns are
  /// asked for.
  template <class Saved, class Registered>
  [[nodiscard]] status match_items(const char* kind, const std::vector<Saved>& saved,
                                   const std::vector<Registered>& model,
                                   std::vector<std::optional<std::size_t>>& out) const {
    const auto name_of = [](const auto& item) -> const auto& { return item.name; };
    for (const Registered& item : model)
      if (!find_by_name(saved, item.name, name_of))
        return schema_error({"the checkpoint has no such ", kind}, {kind, " ", item.name});
    for (const Saved& item : saved) {
      out.push_back(find_by_name(model, item.name, name_of));
      if (!out.back() && only_.empty())
        return schema_error({"the model has no such ", kind, ", the checkpoint has"}, {kind, " ", item.name});
    }
    return {};
  }

  const std::vector<std::string>& only_;
};

}  // namespace checkrow::inline v0::detail
