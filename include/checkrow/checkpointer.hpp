// The checkpointer: what a trainer instantiates.
#pragma once

#include <checkrow/capture/copy_on_touch.hpp>
#include <checkrow/capture/stop_and_copy.hpp>
#include <checkrow/codecs/builtin.hpp>
#include <checkrow/detail/checkpointer_core.hpp>
#include <checkrow/due.hpp>
#include <checkrow/policies.hpp>
#include <checkrow/strategies/intermittent.hpp>
#include <checkrow/trackers/bitmap.hpp>
#include <tuple>

namespace checkrow::inline v0 {

namespace detail {
/// The codec of a set of one, which may be passed instead of the set; void of a larger one.
template <class Codecs>
struct lone_codec_of {
  using type = void;
};
template <class Codec>
struct lone_codec_of<codec_set<Codec>> {
  using type = Codec;
};
}  // namespace detail

/// Saves and restores a model: tables of rows, dense parameters, and states of the trainer.
///
///     checkrow::checkpointer ckpt{checkrow::adaptive<4>{}, checkrow::directory{"run42"},
///     checkrow::every{.batches = 500}};
///
/// Constructed from policies, `options` and an `observer`, in any order; see concepts.hpp. For a member of a
/// class, spell checkpointer<policies<...>>. Table handles, batch scopes, due() and save() may be used from
/// many threads; registration and restore from one. Its destructor finishes a running save and never throws.
/// Every throwing call has a try_ form that returns a status or a result instead.
template <class Policies>
class checkpointer : private detail::table_owner {
 public:
  using codecs = typename Policies::codecs;
  using tracker = typename Policies::tracker;
  using strategy_type = typename Policies::strategy;
  using sink_type = typename Policies::sink;
  using due_type = typename Policies::due;
  using capture = typename Policies::capture;
  using table_type = table_handle<tracker, capture>;

  template <class... Args>
  requires(sizeof...(Args) > 0) explicit checkpointer(Args... args)
      : checkpointer(std::tuple<Args...>(std::move(args)...)) {
    static_assert((accepts<Args> && ...),
                  "checkrow: an argument of this checkpointer is none of its policies<...>, nor options or "
                  "an observer");
  }
  checkpointer(const checkpointer&) = delete;
  checkpointer& operator=(const checkpointer&) = delete;

  // ------------------------------------------------------------------------------------------ registration

  /// Registers a table: weights of shape (rows, dim), contiguous or strided, and its optimizer columns. The
  /// memory has to stay where it is. Misuse: a name taken or unfit, sizes that do not divide, a codec that is
  /// not in the set or cannot encode these weights. A table added after the first save makes the next one
  /// full.
  template <element_range Weights>
  [[nodiscard]] result<table_type> try_table(std::string name, Weights&& weights, std::uint64_t dim,
                                             table_options with = {}) {
    return add_table(std::move(name), column("weights", weights, narrow(dim)), dim, with);
  }
  template <element T>
  [[nodiscard]] result<table_type> try_table(std::string name, strided<T> weights, std::uint64_t dim,
                                             table_options with = {}) {
    return add_table(std::move(name), column("weights", weights, narrow(dim)), dim, with);
  }

  /// Registers a dense parameter: saved whole and exactly, with every checkpoint.
  template <element_range Values>
  [[nodiscard]] status try_dense(std::string name, Values&& values) {
    using value = std::remove_cv_t<std::ranges::range_value_t<Values>>;
    return core_.add(detail::registered_dense{std::move(name), element_traits<value>::type,
                                              std::uint8_t{sizeof(value)}, std::ranges::size(values),
                                              reinterpret_cast<std::byte*>(std::ranges::data(values))});
  }

  /// Registers a state of the trainer: a trivially copyable object, or one with save_state() -> range of
  /// bytes and load_state(std::span<const std::byte>), which may return void, bool or status. Called at the
  /// boundary.
  template <class T>
  [[nodiscard]] status try_state(std::string name, T& state) {
    return core_.add(detail::register_state(std::move(name), state));
  }

  // ---------------------------------------------------------------------------------------------- training

  /// Opens a batch scope; see batch_scope.
  [[nodiscard]] batch_scope batch() { return batch_scope(core_.gate()); }

  /// Is a save due at this step (batches done) and number of samples? True for exactly one caller each time.
  [[nodiscard]] bool due(std::uint64_t step, std::uint64_t samples = 0) noexcept {
    static_assert(!std::same_as<due_type, never_due>,
                  "checkrow: due() needs a due policy: pass every{.batches = 500}");
    if constexpr (!std::same_as<due_type, never_due>)
      return timer_.due(step, samples);
    else
      return false;
  }

  /// Saves the model as it is between two batches; `step` says where it is. Waits for an unfinished save, or
  /// cancels it, or does nothing (options::overlap), waits for open batch scopes, takes what it needs, and
  /// returns; encoding and writing go on behind. A failure of the save is in the ticket, told to the
  /// observer, and thrown by its wait() and by finish(): the rows stay dirty, so the next save has them.
  /// Misuse: called inside a batch scope of the same thread.
  [[nodiscard]] result<ticket> try_save(std::uint64_t step) { return core_.save(step); }

  /// Waits until everything saved is durable; an error where the last save is not. May be called again.
  [[nodiscard]] status try_finish() { return core_.finish(); }

  /// What was done so far. From any thread, at any time.
  [[nodiscard]] statistics snapshot() const { return core_.snapshot(); }

  // -------------------------------------------------------------------------------------------- restoring

  /// Restores the newest whole checkpoint into the registered model; none where nothing was ever saved.
  /// Damaged checkpoints are passed over, and reported. Afterwards nothing is dirty, and deltas go on from
  /// there. Errors: corrupt (none is whole), not_found (no checkpoint of the step asked for), misuse (the
  /// schema differs; names that do not exist; a load_state() refused), unsupported (a codec, version or
  /// option), io. The text says whether the model's contents are undefined.
  [[nodiscard]] result<std::optional<restored>> try_restore(const restore_options& asked = {}) {
    auto found = core_.restore(asked);
    const bool whole = found && *found && asked.tables.empty() && !asked.rows;
    if constexpr (!std::same_as<due_type, never_due>)
      if (whole) timer_.restart((*found)->step);
    return found;
  }

#if CHECKROW_EXCEPTIONS  // the throwing forms
  template <element_range Weights>
  table_type table(std::string name, Weights&& weights, std::uint64_t dim, table_options with = {}) {
    return unwrap(try_table(std::move(name), weights, dim, std::move(with)));
  }
  template <element T>
  table_type table(std::string name, strided<T> weights, std::uint64_t dim, table_options with = {}) {
    return unwrap(try_table(std::move(name), weights, dim, std::move(with)));
  }
  template <element_range Values>
  void dense(std::string name, Values&& values) {
    unwrap(try_dense(std::move(name), values));
  }
  template <class T>
  void state(std::string name, T& state) {
    unwrap(try_state(std::move(name), state));
  }
  ticket save(std::uint64_t step) { return unwrap(try_save(step)); }
  void finish() { unwrap(try_finish()); }
  std::optional<restored> restore(const restore_options& asked = {}) { return unwrap(try_restore(asked)); }
#endif

 private:
  using lone_codec = typename detail::lone_codec_of<codecs>::type;

  template <class Arg>
  static constexpr bool accepts =
      std::same_as<Arg, codecs> || std::same_as<Arg, lone_codec> || std::same_as<Arg, tracker> ||
      std::same_as<Arg, strategy_type> || std::same_as<Arg, sink_type> || std::same_as<Arg, due_type> ||
      std::same_as<Arg, capture> || std::same_as<Arg, options> || std::same_as<Arg, observer>;

  template <class... Args>
  explicit checkpointer(std::tuple<Args...> args)
      : checkpointer(args, std::make_unique<typename capture::staging>(take<capture>(args))) {}
  template <class... Args>
  checkpointer(std::tuple<Args...>& args, std::unique_ptr<typename capture::staging> staging)
      : tracker_(take<tracker>(args)),
        capture_(staging.get()),
        core_(std::make_unique<detail::erased_codecs<codecs>>(take_codecs(args)),
              detail::erase(take<strategy_type>(args)),
              std::make_unique<detail::erased_sink<sink_type>>(take<sink_type>(args)), std::move(staging),
              take<options>(args), take<observer>(args)),
        timer_(take<due_type>(args)) {}

  /// The argument of that type, or a default one.
  template <class Wanted, class... Args>
  [[nodiscard]] static Wanted take(std::tuple<Args...>& args) {
    if constexpr ((std::same_as<Wanted, Args> || ...))
      return std::move(std::get<Wanted>(args));
    else {
      static_assert(std::is_default_constructible_v<Wanted>,
                    "checkrow: this policy has no default value: pass one to the checkpointer");
      return Wanted{};
    }
  }
  template <class... Args>
  [[nodiscard]] static codecs take_codecs(std::tuple<Args...>& args) {
    if constexpr ((std::same_as<Args, codecs> || ...) || std::same_as<lone_codec, void>)
      return take<codecs>(args);
    else
      return codecs(take<lone_codec>(args));
  }

  struct no_timer {
    explicit no_timer(never_due) {}
  };
  template <class Due>
  struct timer_of {
    using type = typename Due::timer;
  };
  template <std::same_as<never_due> Due>
  struct timer_of<Due> {
    using type = no_timer;
  };

  [[nodiscard]] static std::uint32_t narrow(std::uint64_t dim) noexcept {
    return dim > 0xffffffff ? 0 : std::uint32_t(dim);
  }

  [[nodiscard]] result<table_type> add_table(std::string name, const column& weights, std::uint64_t dim,
                                             const table_options& with) {
    using made = detail::tracked_table<tracker, capture>;
    const auto added = core_.add_table(std::move(name), weights, dim, with, [&](auto&& described) {
      return std::make_unique<made>(std::move(described), tracker_, strategy_type::cursors, *capture_,
                                    core_.gate(), static_cast<detail::table_owner&>(*this));
    });
    if (!added) return added.error();
    return table_type(static_cast<made&>(**added));
  }

  [[nodiscard]] status rebind(detail::model_table& table, const column& weights,
                              const std::vector<column>& others) override {
    return core_.rebind(table, weights, others);
  }

  tracker tracker_;
  typename capture::staging* capture_;  ///< the core has it
  detail::checkpointer_core core_;
  typename timer_of<due_type>::type timer_;
};

template <class... Ps>
checkpointer(Ps...) -> checkpointer<policies<Ps...>>;

}  // namespace checkrow::inline v0
