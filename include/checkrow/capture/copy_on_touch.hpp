// Copy-on-touch capture: save() returns at once, and every row is saved as it was at the boundary.
#pragma once

#include <checkrow/detail/touch_capture.hpp>

namespace checkrow::inline v0 {

/// The rows of a plan become pending, which costs the same for a small and a large model. Workers walk them
/// behind the trainer; a touch that meets a pending row copies it aside first. So the trainer has to touch a
/// row before it updates it, and the update has to be done before the next save() (batch scopes see to that
/// where there are many threads). Needs a tracker that is a block_tracker. A table must not move or shrink
/// between save() and the end of that save.
struct copy_on_touch {
  using capture_tag = void;

  /// The most memory for rows that touches have copied and workers not yet encoded. A touch that finds it
  /// used up waits for a worker.
  std::uint64_t aside_bytes = std::uint64_t{64} << 20;
  /// How long such a touch waits before it cancels the save: a sink that hangs never holds the trainer.
  double patience_seconds = 30;

  class staging;
  template <class TableRows>
  class table_part;

  /// Called by table handles. While no save runs: one load and a branch over what the tracker costs.
  template <class TableRows, class Id>
  [[nodiscard]] static std::size_t touch(TableRows& rows, table_part<TableRows>& part,
                                         std::span<const Id> ids) noexcept {
    const std::uint8_t active = part.guard.active();
    if (active == 0) [[likely]]
      return rows.touch(ids);
    return part.guard.touch(ids, active);
  }
  template <class TableRows>
  static void touch_range(TableRows& rows, table_part<TableRows>& part, std::uint64_t first,
                          std::uint64_t count) noexcept {
    const std::uint8_t active = part.guard.active();
    if (active == 0)
      rows.touch_range(first, count);
    else
      part.guard.touch_range(first, count, active);
  }
};

/// Aside memory and the walk over the blocks, for all tables of one checkpointer.
class copy_on_touch::staging final : public detail::touch_capture {
 public:
  explicit staging(const copy_on_touch& policy)
      : touch_capture(policy.aside_bytes, policy.patience_seconds) {}
};

/// What a table has beside its tracker.
template <class TableRows>
class copy_on_touch::table_part {
  static_assert(
      block_tracker<TableRows>,
      "checkrow: copy_on_touch needs a tracker that satisfies block_tracker (see concepts.hpp); use "
      "stop_and_copy with this one");

 public:
  table_part(const detail::registered_table& table, TableRows& rows, staging& capture)
      : guard(table, words_, capture.pool()), words_(rows) {}

  void grow(std::uint64_t rows) { guard.grow(rows); }

  detail::touch_guard guard;

 private:
  class words final : public detail::block_words {
   public:
    explicit words(TableRows& rows) noexcept : rows_(rows) {}
    void begin(row_selection rows, cursor since) noexcept override { rows_.begin(rows, since); }
    std::uint64_t take(std::uint64_t block) noexcept override { return rows_.take(block); }
    std::uint64_t planned(std::uint64_t block) const noexcept override { return rows_.planned(block); }
    std::uint64_t touched_in(std::uint64_t block) const noexcept override { return rows_.touched_in(block); }
    void touch_in(std::uint64_t block, std::uint64_t bits) noexcept override { rows_.touch_in(block, bits); }

   private:
    TableRows& rows_;
  };
  words words_;
};

static_assert(capture_method<copy_on_touch>);

}  // namespace checkrow::inline v0
