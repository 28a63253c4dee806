// What a save may be refused for before anything is sealed: a plan or a codec choice that does not fit.
#pragma once

#include <checkrow/detail/model.hpp>

namespace checkrow::inline v0::detail {

/// Is this codec in the set, and can it encode the weights of this table?
[[nodiscard]] inline status check_codec(const any_codecs& codecs, const registered_table& table,
                                        codec_choice codec, std::size_t column = 0) {
  const column_shape& shape = table.columns[column].shape;
  const std::string named =
      "codec id " + std::to_string(codec.id) + ", " + std::to_string(codec.bits) + " bits";
  if (!codecs.contains(codec))
    return make_error(error_kind::misuse, {"this codec is not in the checkpointer's codec_set"},
                      {"table ", table.name, ", ", named}, {"choose one of the set, or add it to the set"});
  if (column == 0 && shape.width == 1) return {};  // exact, whatever the codec
  if (!codecs.accepts(codec, shape))
    return make_error(error_kind::misuse,
                      {"this codec cannot encode ", to_string(shape.element), " rows of width ", shape.width},
                      {"table ", table.name, ", column ", table.columns[column].name, ", ", named},
                      {"choose exact there, with a codec_set<...>"});
  return {};
}

/// Of a table at its registration: the codecs of its weights and of its other columns.
[[nodiscard]] inline status check_codecs(const any_codecs& codecs, const registered_table& table) {
  status fits = check_codec(codecs, table, table.codec.value_or(codecs.first()));
  for (std::size_t c = 1; c < table.columns.size() && fits; ++c)
    if (table.columns[c].codec != stored_exactly)
      fits = check_codec(codecs, table, table.columns[c].codec, c);
  return fits;
}

/// Is a plan one that can be carried out?
[[nodiscard]] inline status check_plan(const save_plan& plan, const history& past,
                                       const any_strategy& strategy, const any_codecs& codecs,
                                       const registered_model& model) {
  const auto wrong = [&](const char* what) {
    return make_error(error_kind::misuse, {what}, {"strategy ", strategy.name},
                      {"mend the strategy's plan()"});
  };
  for (std::size_t i = 0; i < plan.keep.size(); ++i)
    if (plan.keep[i] >= past.segments.size() || (i > 0 && plan.keep[i] <= plan.keep[i - 1]))
      return wrong("the plan keeps segments that do not exist, or not in ascending order");
  if (plan.rows == row_selection::dirty && (strategy.cursors & cursors(plan.since)) == 0)
    return wrong("the plan names a cursor that the strategy has not declared");
  if (plan.codecs.empty()) return {};
  if (plan.codecs.size() != model.tables.size()) return wrong("the plan has not one codec for each table");
  for (std::size_t t = 0; t < model.tables.size(); ++t)
    if (status fits = check_codec(codecs, *model.tables[t], plan.codecs[t]); !fits) return fits;
  return {};
}

}  // namespace checkrow::inline v0::detail
