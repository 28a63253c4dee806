// Tables: columns, views of them, and the handle through which a trainer touches rows.
#pragma once

#include <array>
#include <cassert>
#include <checkrow/batch.hpp>
#include <checkrow/concepts.hpp>
#include <checkrow/detail/registered.hpp>
#include <ranges>

namespace checkrow::inline v0 {

/// A column that is not contiguous: `rows` rows, the first at `data`, each `stride` bytes after the one
/// before. Interleaved records and padded rows are described so. The stride must hold a row and keep its
/// alignment.
template <element T>
struct strided {
  T* data = nullptr;
  std::size_t stride = 0;  ///< bytes
  std::uint64_t rows = 0;
};

/// A contiguous range of mutable elements: std::vector, std::span, std::array, Eigen's maps, ... A container
/// has to be an lvalue: the library keeps a view of it.
template <class R>
concept element_range = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::ranges::borrowed_range<R> && element<std::ranges::range_value_t<R>> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// A view of one column's memory. It must stay where it is until the checkpointer is gone, or the table is
/// rebound.
class column {
 public:
  /// A contiguous range; its width is its size divided by the table's rows, or as given (a table of no rows
  /// has no size to divide: its columns have width 1 unless they say otherwise).
  template <element_range Range>
  column(std::string column_name, Range&& range, std::uint32_t width = 0,
         codec_choice encoding = detail::stored_exactly)
      : name(std::move(column_name)),
        data(reinterpret_cast<std::byte*>(std::ranges::data(range))),
        elements(std::ranges::size(range)),
        shape{shape_of<std::ranges::range_value_t<Range>>(width)},
        codec(encoding) {}

  template <element T>
  column(std::string column_name, strided<T> rows_of, std::uint32_t width = 1,
         codec_choice encoding = detail::stored_exactly)
      : name(std::move(column_name)),
        data(reinterpret_cast<std::byte*>(rows_of.data)),
        elements(rows_of.rows * width),
        stride(rows_of.stride),
        shape{shape_of<T>(width)},
        codec(encoding) {}

  std::string name;
  std::byte* data = nullptr;
  std::uint64_t elements = 0;  ///< in all rows
  std::size_t stride = 0;      ///< bytes; 0: rows follow each other
  column_shape shape;          ///< width 0: not known yet
  codec_choice codec;          ///< of an optimizer column: exact, or one of the codec_set

 private:
  template <class T>
  [[nodiscard]] static constexpr column_shape shape_of(std::uint32_t width) noexcept {
    return {element_traits<T>::type, std::uint8_t{sizeof(T)}, width};
  }
};

struct table_options {
  std::vector<column> columns{};        ///< optimizer columns, beside the weights
  std::optional<codec_choice> codec{};  ///< of the weights: one of the codec_set; its first where absent
};

namespace detail {

/// What a handle asks of its checkpointer.
class table_owner {
 public:
  /// Waits for the running save and for open scopes, then puts the table onto other memory.
  [[nodiscard]] virtual status rebind(model_table& table, const column& weights,
                                      const std::vector<column>& others) = 0;

 protected:
  ~table_owner() = default;
};

/// A table and its tracker. Its address is stable, so that handles are a pointer.
template <row_tracker Tracker, capture_method Capture>
class tracked_table final : public model_table {
 public:
  tracked_table(registered_table described, const Tracker& tracker, cursor_set kept,
                typename Capture::staging& capture, batch_gate& batches, table_owner& checkpointer)
      : model_table(std::move(described)),
        tracked(tracker, rows, kept),
        captured(*this, tracked, capture),
        gate(&batches),
        owner(&checkpointer) {}

  [[nodiscard]] std::uint64_t dirty() const noexcept override { return tracked.dirty(); }
  [[nodiscard]] bool touched(std::uint64_t row) const noexcept override {
    if constexpr (requires { tracked.touched(row); })
      return tracked.touched(row);
    else
      return static_cast<void>(row), true;
  }
  [[nodiscard]] selected_rows collect(row_selection selection, cursor since) override;
  [[nodiscard]] touch_guard* guard() noexcept override {
    if constexpr (requires { captured.guard; })
      return &captured.guard;
    else
      return nullptr;
  }
  void commit(cursor_set moved) noexcept override { tracked.commit(moved); }
  void mark(cursor since, std::span<const std::uint64_t> ids) noexcept override { tracked.mark(since, ids); }
  void clear() noexcept override { tracked.clear(); }
  [[nodiscard]] bool grow(std::uint64_t more) override {
    if constexpr (requires { tracked.grow(more); }) {
      tracked.grow(more);
      if constexpr (requires { captured.grow(more); }) captured.grow(more);
      return true;
    } else {
      return static_cast<void>(more), false;
    }
  }

  typename Tracker::table_rows tracked;
  typename Capture::template table_part<typename Tracker::table_rows> captured;
  batch_gate* gate;
  table_owner* owner;
};

template <row_tracker Tracker, capture_method Capture>
selected_rows tracked_table<Tracker, Capture>::collect(row_selection selection, cursor since) {
  selected_rows out;
  out.all = selection == row_selection::all;
  tracked.begin(selection, since);
  for (std::uint64_t block = 0; block < tracked.blocks(); ++block) {
    std::uint64_t pending = tracked.take(block);
    if (out.all) continue;  // taken for the fold alone
    for (; pending != 0; pending &= pending - 1)
      out.ids.push_back(block * 64 + unsigned(std::countr_zero(pending)));
  }
  out.rows = out.all ? rows : out.ids.size();
  return out;
}

template <class Id>
concept row_id = std::integral<Id> &&(sizeof(Id) == 4 || sizeof(Id) == 8);

}  // namespace detail

/// A handle of one table: cheap to copy, thread-safe, valid as long as its checkpointer.
template <row_tracker Tracker, capture_method Capture>
class table_handle {
 public:
  explicit table_handle(detail::tracked_table<Tracker, Capture>& table) noexcept : table_(&table) {}

  [[nodiscard]] const std::string& name() const noexcept { return table_->name; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return table_->rows; }
  /// Rows touched since the last save() call.
  [[nodiscard]] std::uint64_t dirty_rows() const noexcept { return table_->tracked.dirty(); }

  /// Says which rows this batch reads or updates; call it before they are updated, from any thread. Ids are
  /// int32, int64, uint32 or uint64, in any order, with repeats, possibly none; row ids are 0 to rows() - 1.
  /// An id out of range is a misuse error that names it: the ids before it are marked, the rest is not.
  template <std::ranges::input_range Ids>
  requires detail::row_id<std::remove_cv_t<std::ranges::range_value_t<Ids>>>
  [[nodiscard]] status try_touch(const Ids& ids) noexcept {
    assert(table_->gate->open_or_unused() &&
           "checkrow: touch outside any batch scope, though scopes are used");
    using id_type = std::remove_cv_t<std::ranges::range_value_t<Ids>>;
    if constexpr (std::ranges::contiguous_range<const Ids> && std::ranges::sized_range<const Ids>) {
      return mark(std::span<const id_type>(std::ranges::data(ids), std::ranges::size(ids)));
    } else {
      std::array<id_type, 256> some;
      std::size_t n = 0;
      for (const id_type id : ids) {
        some[n++] = id;
        if (n < some.size()) continue;
        if (status marked = mark(std::span<const id_type>(some)); !marked) return marked;
        n = 0;
      }
      return mark(std::span<const id_type>(some.data(), n));
    }
  }

  /// The same for rows first to first + count - 1.
  [[nodiscard]] status try_touch_range(std::uint64_t first, std::uint64_t count) noexcept {
    assert(table_->gate->open_or_unused() &&
           "checkrow: touch outside any batch scope, though scopes are used");
    if (count > table_->rows || first > table_->rows - count)
      return out_of_range(first > table_->rows ? first : table_->rows);
    if (count != 0) Capture::touch_range(table_->tracked, table_->captured, first, count);
    return {};
  }

  /// Every row: for updates that touch them all (weight decay).
  void touch_all() noexcept {
    if (table_->rows != 0) Capture::touch_range(table_->tracked, table_->captured, 0, table_->rows);
  }

  /// The table lies elsewhere from now on, with as many rows or more: weights of the same width, and the same
  /// columns, at the same widths. Between two batches, as save(): waits for an unfinished save and for open
  /// scopes; no touch outside a scope may run. The contents are the caller's to move; old memory is not read
  /// any more. New rows count as touched, and a table that grew makes the next save a full one. Handles stay
  /// valid. Misuse: fewer rows, other columns, a scope of this thread; unsupported: more rows with a tracker
  /// that cannot grow. On an error nothing has changed.
  template <element_range Weights>
  [[nodiscard]] status try_rebind(Weights&& weights, const std::vector<column>& columns = {}) {
    return table_->owner->rebind(*table_, column("weights", weights, table_->columns[0].shape.width),
                                 columns);
  }
  template <element T>
  [[nodiscard]] status try_rebind(strided<T> weights, const std::vector<column>& columns = {}) {
    return table_->owner->rebind(*table_, column("weights", weights, table_->columns[0].shape.width),
                                 columns);
  }

#if CHECKROW_EXCEPTIONS
  template <element_range Weights>
  void rebind(Weights&& weights, const std::vector<column>& columns = {}) {
    unwrap(try_rebind(weights, columns));
  }
  template <element T>
  void rebind(strided<T> weights, const std::vector<column>& columns = {}) {
    unwrap(try_rebind(weights, columns));
  }

  /// The throwing forms: misuse_error where an id is out of range, nothing else.
  template <std::ranges::input_range Ids>
  requires detail::row_id<std::remove_cv_t<std::ranges::range_value_t<Ids>>>
  void touch(const Ids& ids) {
    if (status marked = try_touch(ids); !marked) raise(std::move(marked).error());
  }
  void touch_range(std::uint64_t first, std::uint64_t count) {
    if (status marked = try_touch_range(first, count); !marked) raise(std::move(marked).error());
  }
#endif

 private:
  template <class Id>
  [[nodiscard]] status mark(std::span<const Id> ids) noexcept {
    const std::size_t marked = Capture::touch(table_->tracked, table_->captured, ids);
    if (marked == ids.size()) [[likely]]
      return {};
    return out_of_range(ids[marked]);
  }

  template <class Id>
  [[nodiscard]] status out_of_range(Id id) const noexcept {
    return detail::make_error(error_kind::misuse, {"row id ", id, " is out of range"},
                              {"table ", table_->name}, {"ids are 0 to ", table_->rows, " - 1"});
  }

  detail::tracked_table<Tracker, Capture>* table_;
};

}  // namespace checkrow::inline v0
