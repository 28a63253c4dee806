// What a checkpointer does that depends on none of its policies' types: registration, saving, restoring.
#pragma once

#include <checkrow/batch.hpp>
#include <checkrow/detail/erased.hpp>
#include <checkrow/detail/registered_items.hpp>
#include <checkrow/observer.hpp>
#include <checkrow/options.hpp>
#include <checkrow/restore.hpp>
#include <checkrow/statistics.hpp>
#include <checkrow/table.hpp>
#include <checkrow/ticket.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace checkrow::inline v0::detail {

/// The calls of a checkpointer, which says what each of them does. One is done at a time, with the background
/// thread idle, and none inside a batch scope of the same thread.
class checkpointer_core {
 public:
  checkpointer_core(std::unique_ptr<any_codecs> codecs, any_strategy strategy, std::unique_ptr<any_sink> sink,
                    std::unique_ptr<any_capture> capture, options chosen, observer watching);
  ~checkpointer_core();
  checkpointer_core(const checkpointer_core&) = delete;
  checkpointer_core& operator=(const checkpointer_core&) = delete;

  /// Makes the table of its type from the description.
  using table_maker = std::function<std::unique_ptr<model_table>(registered_table&&)>;
  [[nodiscard]] result<model_table*> add_table(std::string name, const column& weights, std::uint64_t dim,
                                               const table_options& with, const table_maker& make);
  [[nodiscard]] status add(registered_dense dense);
  [[nodiscard]] status add(registered_state state);
  [[nodiscard]] status rebind(model_table& table, const column& weights, const std::vector<column>& others);

  [[nodiscard]] batch_gate& gate() noexcept;
  [[nodiscard]] result<ticket> save(std::uint64_t step);
  [[nodiscard]] status finish();
  [[nodiscard]] statistics snapshot() const;
  [[nodiscard]] result<std::optional<restored>> restore(const restore_options& asked);

 private:
  struct members;
  std::unique_ptr<members> owned_;
  members&
      members_;  ///< the same, also while the pointer is destroyed: an observer may still call snapshot()
};

}  // namespace checkrow::inline v0::detail

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/checkpointer_core.hpp>
#endif
