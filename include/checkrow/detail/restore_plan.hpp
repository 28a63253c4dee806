// Matches a checkpoint's schema with the registered model, before anything is read from a segment.
#pragma once

#include <checkrow/detail/model.hpp>
#include <checkrow/restore.hpp>

namespace checkrow::inline v0::detail {

/// Where one saved table goes: for each saved column the registered one, or null to skip it.
struct table_target {
  std::size_t table = 0;  ///< index in the model
  std::vector<const registered_column*> columns;
  std::uint64_t first = 0, end = 0;  ///< the rows wanted

  /// Does a chunk hold any of them?
  [[nodiscard]] bool wants(std::uint64_t from, std::uint64_t to) const noexcept {
    return from < end && to >= first;
  }
};

/// Where everything of a checkpoint goes: tables, and the indices of dense parameters and states in the
/// model. Absent: to be skipped.
struct restore_plan {
  std::vector<std::optional<table_target>> tables;
  std::vector<std::optional<std::size_t>> dense, states;
  bool complete = true;  ///< the model becomes what was saved, so that deltas can build upon it
  bool small = true;     ///< dense parameters and states are restored at all

  [[nodiscard]] const table_target* target(std::uint64_t table) const noexcept {
    return table < tables.size() && tables[table] ? &*tables[table] : nullptr;
  }
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

template <class Names>
[[nodiscard]] status check_distinct(const char* field, const Names& names) {
  for (auto one = names.begin(); one != names.end(); ++one)
    if (std::find(names.begin(), one, *one) != one)
      return make_error(error_kind::misuse, {"a name is listed twice"}, {field, ", ", *one},
                        {"list it once"});
  return {};
}

/// What can be said of the options without any checkpoint: names are the model's, and listed once.
[[nodiscard]] inline status check_asked(const restore_options& asked, const registered_model& model) {
  const auto unknown = [](const char* what, const char* field, const std::string& name) {
    return make_error(error_kind::misuse, {"the model has no such ", what}, {field, ", ", name},
                      {"use a name that is registered"});
  };
  const auto has_table = [&](const std::string& name) {
    return std::any_of(model.tables.begin(), model.tables.end(),
                       [&](const auto& t) { return t->name == name; });
  };
  const auto has_column = [&](const std::string& name) {
    for (const auto& table : model.tables)
      for (const registered_column& column : table->columns)
        if (column.name == name) return true;
    return false;
  };
  std::vector<std::string> from, to;
  for (const auto& [saved, mine] : asked.rename) from.push_back(saved), to.push_back(mine);
  const std::pair<const char*, const std::vector<std::string>*> lists[] = {
      {".tables", &asked.tables}, {".columns", &asked.columns}, {".rename", &from}, {".rename", &to}};
  for (const auto& [field, names] : lists)
    if (status distinct = check_distinct(field, *names); !distinct) return distinct;
  for (const std::string& name : asked.tables)
    if (!has_table(name)) return unknown("table", ".tables", name);
  for (const std::string& name : to)
    if (!has_table(name)) return unknown("table", ".rename", name);
  for (const std::string& name : asked.columns)
    if (!has_column(name)) return unknown("column", ".columns", name);
  if (asked.rows && asked.rows->count == 0)
    return make_error(error_kind::misuse, {"the range of rows is empty"}, {".rows"},
                      {"ask for a row at least"});
  if (asked.consistency != consistency_level::consistent)
    return make_error(error_kind::unsupported, {"this restore option is not built yet"}, {".consistency"},
                      {"leave it at its default"});
  return {};
}

/// Matches one checkpoint with the model, by the options of the restore.
class schema_matcher {
 public:
  schema_matcher(const restore_options& asked, const registered_model& model)
      : asked_(asked), model_(model) {}

  [[nodiscard]] result<restore_plan> match(const format::manifest& saved) const {
    restore_plan plan;
    plan.complete = asked_.tables.empty() && !asked_.rows && asked_.columns.empty() && asked_.rename.empty();
    plan.small = asked_.tables.empty() && !asked_.rows;
    if (status done = match_tables(saved, plan); !done) return std::move(done).error();
    plan.dense.resize(saved.dense.size());
    plan.states.resize(saved.states.size());
    if (!plan.small) return plan;
    if (status done = match_items("dense parameter", saved.dense, model_.dense, plan.dense); !done)
      return std::move(done).error();
    for (std::size_t i = 0; i < saved.dense.size(); ++i)
      if (plan.dense[i] && schema_of(model_.dense[*plan.dense[i]]) != saved.dense[i])
        return schema_error({"its size or element type differs: ", saved.dense[i].count,
                             " elements were saved, the model has ", model_.dense[*plan.dense[i]].count},
                            {"dense parameter ", saved.dense[i].name});
    if (status done = match_items("state", saved.states, model_.states, plan.states); !done)
      return std::move(done).error();
    for (std::size_t i = 0; i < saved.states.size(); ++i)
      if (plan.states[i] &&
          model_.states[*plan.states[i]].fixed_bytes.value_or(saved.states[i].bytes) != saved.states[i].bytes)
        return schema_error(
            {"its size differs: ", saved.states[i].bytes, " bytes were saved, the model's has ",
             *model_.states[*plan.states[i]].fixed_bytes},
            {"state ", saved.states[i].name});
    return plan;
  }

 private:
  /// The saved table's name in the model; null where another one takes its place.
  [[nodiscard]] const std::string* name_in_model(const std::string& saved) const {
    for (const auto& [from, to] : asked_.rename)
      if (from == saved) return &to;
    for (const auto& [from, to] : asked_.rename)
      if (to == saved) return nullptr;
    return &saved;
  }
  [[nodiscard]] bool wants_table(const std::string& name) const {
    return asked_.tables.empty() ||
           std::find(asked_.tables.begin(), asked_.tables.end(), name) != asked_.tables.end();
  }
  [[nodiscard]] bool wants_column(const std::string& column) const {
    return asked_.columns.empty() ||
           std::find(asked_.columns.begin(), asked_.columns.end(), column) != asked_.columns.end();
  }

  [[nodiscard]] status match_tables(const format::manifest& saved, restore_plan& plan) const {
    for (const auto& [from, to] : asked_.rename)
      if (!find_by_name(
              saved.tables, from, [](const auto& t) -> const auto& { return t.name; }))
        return make_error(error_kind::misuse, {"the checkpoint has no table of this name"},
                          {".rename, ", from}, {"give the name that it was saved under"});
    std::vector<bool> found(model_.tables.size());
    for (const format::table_schema& table : saved.tables) {
      const std::string* const name = name_in_model(table.name);
      std::optional<std::size_t> at;
      if (name != nullptr)
        at = find_by_name(
            model_.tables, *name, [](const auto& t) -> const auto& { return t->name; });
      if (!at && asked_.tables.empty())
        return schema_error({"the model has no such table, the checkpoint has"}, {"table ", table.name});
      plan.tables.emplace_back();
      if (!at || !wants_table(*name)) continue;
      auto target = match_table(table, *model_.tables[*at]);
      if (!target) return std::move(target).error();
      target->table = *at;
      found[*at] = true;
      plan.complete &= model_.tables[*at]->rows == table.rows;
      plan.tables.back() = *std::move(target);
    }
    for (std::size_t t = 0; t < found.size(); ++t)
      if (!found[t] && wants_table(model_.tables[t]->name))
        return schema_error({"the checkpoint has no such table"}, {"table ", model_.tables[t]->name});
    return {};
  }

  [[nodiscard]] result<table_target> match_table(const format::table_schema& saved,
                                                 const registered_table& table) const {
    const std::string where = "table " + table.name;
    if (saved.rows < table.rows && !asked_.allow_more_rows)
      return make_error(error_kind::misuse, {saved.rows, " rows were saved, the model has ", table.rows},
                        {where},
                        {"register it as it was saved, or start new rows afresh with .allow_more_rows"});
    if (saved.rows > table.rows)
      return schema_error({saved.rows, " rows were saved, the model has ", table.rows}, {where});
    const v0::row_range rows = asked_.rows.value_or(v0::row_range{0, saved.rows});
    if (rows.count > saved.rows || rows.first > saved.rows - rows.count)
      return make_error(
          error_kind::misuse,
          {"rows ", rows.first, " and ", rows.count, " in all were asked for, ", saved.rows, " were saved"},
          {where}, {"ask for rows that were saved, of tables chosen with .tables"});
    table_target target;
    target.first = rows.first, target.end = rows.first + rows.count;
    std::size_t found = 0, asked = 0;
    for (const registered_column& column : table.columns) asked += wants_column(column.name) ? 1 : 0;
    for (const format::column_schema& column : saved.columns) {
      const auto at = find_by_name(
          table.columns, column.name, [](const auto& c) -> const auto& { return c.name; });
      if (!at && asked_.columns.empty())
        return schema_error({"the model has no such column, the checkpoint has"},
                            {where, ", column ", column.name});
      const bool taken = at && wants_column(column.name);
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
      std::optional<std::size_t>& at = out[std::size_t(&item - saved.data())];
      at = find_by_name(model, item.name, name_of);
      if (!at && asked_.columns.empty())
        return schema_error({"the model has no such ", kind, ", the checkpoint has"}, {kind, " ", item.name});
    }
    return {};
  }

  const restore_options& asked_;
  const registered_model& model_;
};

}  // namespace checkrow::inline v0::detail
