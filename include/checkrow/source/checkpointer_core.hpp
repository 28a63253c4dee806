// The bodies of detail/checkpointer_core.hpp.
#pragma once

#include <checkrow/detail/checkpointer_core.hpp>
#include <checkrow/detail/rebind.hpp>
#include <checkrow/detail/restore_path.hpp>
#include <checkrow/detail/save_path.hpp>
#include <mutex>

namespace checkrow::inline v0::detail {

struct checkpointer_core::members {
  members(std::unique_ptr<any_codecs> codecs, any_strategy strategy, std::unique_ptr<any_sink> sink,
          std::unique_ptr<any_capture> capture, options chosen, observer watching)
      : path(std::move(codecs), std::move(strategy), std::move(sink), std::move(capture), std::move(chosen),
             std::move(watching)) {}

  /// One call at a time, with the background thread idle.
  [[nodiscard]] std::unique_lock<std::mutex> hold() {
    std::unique_lock lock(mutex);
    path.wait_idle();
    return lock;
  }

  template <class Item>
  [[nodiscard]] status add(const char* call, Item item) {
    if (path.gate.inside()) return inside(call);
    const auto lock = hold();
    return detail::add(path.model, std::move(item));
  }

  [[nodiscard]] static error inside(const char* call) {
    return make_error(error_kind::misuse,
                      {call, " inside a batch scope of the same thread would wait for itself"}, {},
                      {"end() the scope first"});
  }

  save_path path;
  std::mutex mutex;
  bool fresh = true;  ///< nothing was saved or restored yet
};

CHECKROW_INLINE checkpointer_core::checkpointer_core(std::unique_ptr<any_codecs> codecs,
                                                     any_strategy strategy, std::unique_ptr<any_sink> sink,
                                                     std::unique_ptr<any_capture> capture, options chosen,
                                                     observer watching)
    : owned_(std::make_unique<members>(std::move(codecs), std::move(strategy), std::move(sink),
                                       std::move(capture), std::move(chosen), std::move(watching))),
      members_(*owned_) {}

CHECKROW_INLINE checkpointer_core::~checkpointer_core() = default;

CHECKROW_INLINE result<model_table*> checkpointer_core::add_table(std::string name, const column& weights,
                                                                  std::uint64_t dim,
                                                                  const table_options& with,
                                                                  const table_maker& make) {
  save_path& path = members_.path;
  if (dim == 0 || dim > 0xffffffff || weights.elements % dim != 0)
    return make_error(error_kind::misuse, {weights.elements, " weights are no rows of dim ", dim},
                      {"table ", name}, {"the weights' size has to be rows times dim"});
  auto described = register_table(std::move(name), weights, weights.elements / dim, with);
  if (!described) return std::move(described).error();
  if (status fits = check_codecs(path.codecs(), *described); !fits) return std::move(fits).error();
  if (path.gate.inside()) return members::inside("table");
  const auto lock = members_.hold();
  const std::string registered = described->name;
  std::unique_ptr<model_table> table = make(*std::move(described));
  model_table* const stable = table.get();
  if (!insert_by_name(
          path.model.tables, std::move(table), [](const auto& t) -> const auto& { return t->name; }))
    return name_taken("table", registered);
  path.parent = nullptr;
  return stable;
}

CHECKROW_INLINE status checkpointer_core::add(registered_dense dense) {
  return members_.add("dense", std::move(dense));
}
CHECKROW_INLINE status checkpointer_core::add(registered_state state) {
  return members_.add("state", std::move(state));
}

CHECKROW_INLINE status checkpointer_core::rebind(model_table& table, const column& weights,
                                                 const std::vector<column>& others) {
  save_path& path = members_.path;
  if (path.gate.inside()) return members::inside("rebind");
  const auto lock = members_.hold();
  const closed_gate boundary(path.gate);
  return guarded("the tracker", table.name, [&] { return rebind_table(path, table, weights, others); });
}

CHECKROW_INLINE batch_gate& checkpointer_core::gate() noexcept { return members_.path.gate; }

CHECKROW_INLINE result<ticket> checkpointer_core::save(std::uint64_t step) {
  save_path& path = members_.path;
  const auto asked = steady_clock::now();
  if (path.gate.inside()) return members::inside("save");
  const std::lock_guard lock(members_.mutex);
  return guarded_result("saving", "", [&]() -> result<ticket> {
    if (!path.make_way()) return path.skip(step);
    members_.fresh = false;
    return path.save(step, asked);
  });
}

CHECKROW_INLINE status checkpointer_core::finish() {
  save_path& path = members_.path;
  if (path.gate.inside()) return members::inside("finish");
  const auto lock = members_.hold();
  return path.last_ticket == nullptr ? status{} : ticket(path.last_ticket).try_wait();
}

CHECKROW_INLINE statistics checkpointer_core::snapshot() const { return members_.path.events.snapshot(); }

CHECKROW_INLINE result<std::optional<restored>> checkpointer_core::restore(const restore_options& asked) {
  save_path& path = members_.path;
  if (path.gate.inside()) return members::inside("restore");
  const auto lock = members_.hold();
  bool touched = !members_.fresh;
  for (const auto& table : path.model.tables) touched |= table->dirty() != 0;
  auto found = [&] {
    const closed_gate boundary(path.gate);
    restore_path restore(path, asked, touched);
    return guarded_result("restoring", path.where(), [&] { return restore.run(); });
  }();
  if (!found) path.notify({.kind = event_kind::failed, .why = &found.error()});
  if (found && *found) members_.fresh = false;
  return found;
}

}  // namespace checkrow::inline v0::detail
