// The policy concepts, and policies<...>, which picks one of each kind out of any order. Read this first.
//
// A checkpointer is composed of a row codec, a row tracker, a strategy and a sink; two smaller seams, when a
// save is due and how rows are captured, have defaults that most trainers keep. A policy is a small value
// type: it satisfies one of the concepts below, and nothing else in the library knows which one runs.
#pragma once

#include <checkrow/element.hpp>
#include <checkrow/error.hpp>
#include <checkrow/plan.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace checkrow::inline v0 {

// clang-format off
// ------------------------------------------------------------------------------------------------ row codec

/// Encodes and decodes rows of one column. Deterministic: the same row gives the same bytes anywhere.
///
///   static constexpr std::uint16_t id    frozen on disk; a user's own from 0x8000
///   static constexpr std::uint8_t bits   bits per element, part of the name on disk
///   static constexpr std::string_view name;  static constexpr std::uint32_t version   (in the manifest)
///   accepts(shape)                       can it encode columns of this shape?
///   bound(shape, rows)                   the most bytes that encode() may write for that many rows
///   encode(shape, rows, n, out)          writes at most bound() bytes to out, returns how many
///   decode(shape, bytes, n, rows)        reads exactly n rows from untrusted bytes; false where they are not
///                                        what encode() writes. Must never read or write out of bounds.
template <class C>
concept row_codec = std::copyable<C> &&
    requires(const C codec, column_shape shape, row_view from, row_span to, std::size_t n, std::byte* out,
             std::span<const std::byte> in) {
  { C::id } -> std::convertible_to<std::uint16_t>;
  { C::bits } -> std::convertible_to<std::uint8_t>;
  { C::name } -> std::convertible_to<std::string_view>;
  { C::version } -> std::convertible_to<std::uint32_t>;
  { codec.accepts(shape) } noexcept -> std::same_as<bool>;
  { codec.bound(shape, n) } noexcept -> std::same_as<std::size_t>;
  { codec.encode(shape, from, n, out) } noexcept -> std::same_as<std::size_t>;
  { codec.decode(shape, in, n, to) } noexcept -> std::same_as<bool>;
};

// ---------------------------------------------------------------------------------------------- row tracker

/// Remembers which rows changed. The policy is a value; each table gets a `table_rows` of its own, made from
/// (policy, rows, cursors). In it, a block is 64 consecutive rows, and a bit set stands for one row of it.
///
///   touch(ids)            from many threads; marks rows as changed. Returns how many ids of the span were
///                         marked: less than its size where that id is out of range (the rest is untouched)
///   touch_range(first, n) the same for consecutive rows, which must be in range
///   dirty()               rows newly marked since the last begin()
///   begin(rows, since)    at a save's boundary, no touch running: O(1)
///   take(block)           once a block after begin(): folds the touches into every cursor, returns the rows
///                         of that block that the save has to write
///   commit(cursors)       the save is durable: those cursors restart at its boundary. Touches may run.
///                         A failed save commits nothing, so its rows are still changed
///   mark(cursor, ids)     at restore: those rows count as changed since that cursor's point
///   clear()               at restore: nothing has changed
/// commit() and mark() ignore cursors that the strategy does not keep.
template <class R>
concept table_row_tracker = requires(R rows, const R seen, std::span<const std::uint64_t> ids,
                                     std::span<const std::int32_t> narrow) {
  { rows.touch(ids) } noexcept -> std::same_as<std::size_t>;
  { rows.touch(narrow) } noexcept -> std::same_as<std::size_t>;
  { rows.touch_range(std::uint64_t{}, std::uint64_t{}) } noexcept;
  { seen.dirty() } noexcept -> std::same_as<std::uint64_t>;
  { rows.begin(row_selection{}, cursor{}) } noexcept;
  { seen.blocks() } noexcept -> std::same_as<std::uint64_t>;
  { rows.take(std::uint64_t{}) } noexcept -> std::same_as<std::uint64_t>;
  { rows.commit(cursor_set{}) } noexcept;
  { rows.mark(cursor{}, ids) } noexcept;
  { rows.clear() } noexcept;
};

template <class T>
concept row_tracker = std::copyable<T> && requires {
  typename T::table_rows;
} && table_row_tracker<typename T::table_rows> &&
    std::constructible_from<typename T::table_rows, const T&, std::uint64_t, cursor_set>;

// ------------------------------------------------------------------------------------------------- strategy

/// Decides what a save writes. A pure function of the committed past and the boundary's counts, so that every
/// rank decides alike and tests need no files.
///
///   static constexpr std::string_view name
///   static constexpr cursor_set cursors   the cursors that it may name in a plan; each costs a bit a row
///   plan(history, boundary)               with an empty history it has to ask for all rows, unless it can
///                                         do without (rows that are regenerated, say)
template <class S>
concept strategy = std::copyable<S> && requires(const S policy, const history& past, const boundary& now) {
  { S::name } -> std::convertible_to<std::string_view>;
  { S::cursors } -> std::convertible_to<cursor_set>;
  { policy.plan(past, now) } -> std::same_as<save_plan>;
};

// ----------------------------------------------------------------------------------------------------- sink

/// A blob that a sink holds.
struct blob {
  std::string name;
  std::uint64_t bytes = 0;
};

/// Writes one blob. Nobody sees the blob before commit() returned success, and then it is durable. Dropping a
/// writer abandons the blob. After commit() or abandon() nothing more is called.
template <class W>
concept blob_writer = std::movable<W> && requires(W writer, std::span<const std::byte> bytes) {
  { writer.append(bytes) } -> std::same_as<status>;
  { writer.commit() } -> std::same_as<status>;
  { writer.abandon() } noexcept;
};

/// Reads one blob. read() fills the whole span or fails; it may be called from several threads.
template <class R>
concept blob_reader = std::movable<R> && requires(R reader, std::uint64_t offset, std::span<std::byte> out) {
  { reader.bytes() } noexcept -> std::same_as<std::uint64_t>;
  { reader.read(offset, out) } -> std::same_as<status>;
};

/// Named immutable blobs. Names are letters, digits, '.', '-' and '_'.
///   create(name) -> result<writer>    open(name) -> result<reader>    list() -> result<vector<blob>>
///   remove(name) -> status            where() -> string, for messages
/// Optional:
///   claim(part) -> result<claim>      the right to write that part, until the claim is destroyed; refused
///                                     (misuse) while another writer holds it
///   sweep(part) -> status             by the claim's holder: removes what dead writers left behind
///   writer_bytes() -> uint64          the most memory that one writer holds
///   notes() -> vector<error>          where it fell back to something slower, since the last call
template <class S>
concept sink = std::movable<S> && requires(S store, std::string_view name) {
  requires blob_writer<typename S::writer>;
  requires blob_reader<typename S::reader>;
  { store.create(name) } -> std::same_as<result<typename S::writer>>;
  { store.open(name) } -> std::same_as<result<typename S::reader>>;
  { store.list() } -> std::same_as<result<std::vector<blob>>>;
  { store.remove(name) } -> std::same_as<status>;
  { store.where() } -> std::convertible_to<std::string>;
};

/// Decides when a save is due. `timer` is made from the policy; due() is true for exactly one of the threads
/// that ask, restart() says where a restored run goes on.
template <class D>
concept due_policy = std::copyable<D> && requires {
  typename D::timer;
} && std::constructible_from<typename D::timer, const D&> &&
    requires(typename D::timer timer, std::uint64_t step, std::uint64_t samples) {
  { timer.due(step, samples) } noexcept -> std::same_as<bool>;
  { timer.restart(step) } noexcept;
};

/// How the rows of a plan are read as they were at the boundary. See capture/stop_and_copy.hpp.
template <class C>
concept capture_method = std::copyable<C> && requires {
  typename C::capture_tag;
};

// clang-format on
// ------------------------------------------------------------------------------------------------- policies

template <row_codec... Codecs>
class codec_set;
struct exact;
struct bitmap;
struct intermittent;
struct stop_and_copy;

/// No due policy was given: the trainer decides by itself when to save.
struct never_due {};

namespace detail {

enum class policy_kind : std::uint8_t { none, codec, tracker, strategy, sink, due, capture, setting };

template <class P>
inline constexpr bool is_codec_set = false;
template <class... Codecs>
inline constexpr bool is_codec_set<codec_set<Codecs...>> = true;

template <class P>
concept claims_codec = requires {
  P::id;
}
|| requires(const P& p, column_shape s) { p.accepts(s); };
template <class P>
concept claims_tracker = requires {
  typename P::table_rows;
};
template <class P>
concept claims_strategy = requires {
  P::cursors;
}
|| requires(const P& p, const history& h, const boundary& b) { p.plan(h, b); };
template <class P>
concept claims_sink = requires {
  typename P::writer;
}
|| requires { typename P::reader; };
template <class P>
concept claims_due = requires {
  typename P::timer;
};
template <class P>
concept claims_setting = requires {
  typename P::setting_tag;
};

template <class P>
[[nodiscard]] consteval policy_kind kind_of() {
  if constexpr (is_codec_set<P>)
    return policy_kind::codec;
  else if constexpr (claims_codec<P>) {
    static_assert(row_codec<P>,
                  "checkrow: this codec lacks something that row_codec asks for; see concepts.hpp");
    return policy_kind::codec;
  } else if constexpr (claims_tracker<P>) {
    static_assert(row_tracker<P>,
                  "checkrow: this tracker lacks something that row_tracker asks for; see concepts.hpp");
    return policy_kind::tracker;
  } else if constexpr (claims_strategy<P>) {
    static_assert(strategy<P>,
                  "checkrow: this strategy lacks something that strategy asks for; see concepts.hpp");
    return policy_kind::strategy;
  } else if constexpr (claims_sink<P>) {
    static_assert(sink<P>, "checkrow: this sink lacks something that sink asks for; see concepts.hpp");
    return policy_kind::sink;
  } else if constexpr (claims_due<P>) {
    static_assert(due_policy<P>,
                  "checkrow: this due policy lacks something that due_policy asks for; see concepts.hpp");
    return policy_kind::due;
  } else if constexpr (capture_method<P>)
    return policy_kind::capture;
  else if constexpr (claims_setting<P>)
    return policy_kind::setting;
  else
    return policy_kind::none;
}

/// The one policy of a kind among Ps, or the default.
template <policy_kind Kind, class Default, class... Ps>
struct pick {
  using type = Default;
};
template <policy_kind Kind, class Default, class P, class... Ps>
struct pick<Kind, Default, P, Ps...>
    : std::conditional_t<kind_of<P>() == Kind, std::type_identity<P>, pick<Kind, Default, Ps...>> {};

template <class P>
struct as_codec_set {
  using type = codec_set<P>;
};
template <class... Codecs>
struct as_codec_set<codec_set<Codecs...>> {
  using type = codec_set<Codecs...>;
};

template <policy_kind Kind, class... Ps>
inline constexpr std::size_t how_many = (std::size_t{0} + ... + (kind_of<Ps>() == Kind ? 1 : 0));

struct no_sink;

}  // namespace detail

/// A set of policies, in any order, each kind at most once; all but the sink have a default: exact codec,
/// bitmap tracker, intermittent strategy, stop_and_copy capture, and no due policy.
template <class... Ps>
struct policies {
  using kind = detail::policy_kind;
  template <kind Kind>
  static constexpr std::size_t count = detail::how_many<Kind, Ps...>;
  static_assert(
      ((detail::kind_of<Ps>() != kind::none) && ...),
      "checkrow: policies<...> was given a type that is no policy: a codec has id and encode(), a tracker "
      "has table_rows, a strategy has plan(), a sink has writer and reader; see concepts.hpp");
  static_assert(count<kind::sink> >= 1,
                "checkrow: a checkpointer needs a sink: pass directory{\"path\"}, memory{} or your own");
  static_assert(count<kind::sink> <= 1, "checkrow: two sinks were given");
  static_assert(count<kind::codec> <= 1,
                "checkrow: two codecs were given; use codec_set<...> to choose one per table at run time");
  static_assert(count<kind::tracker> <= 1, "checkrow: two trackers were given");
  static_assert(count<kind::strategy> <= 1, "checkrow: two strategies were given");
  static_assert(count<kind::due> <= 1, "checkrow: two due policies were given");
  static_assert(count<kind::capture> <= 1, "checkrow: two captures were given");

  using codecs = typename detail::as_codec_set<typename detail::pick<kind::codec, exact, Ps...>::type>::type;
  using tracker = typename detail::pick<kind::tracker, bitmap, Ps...>::type;
  using strategy = typename detail::pick<kind::strategy, intermittent, Ps...>::type;
  using sink = typename detail::pick<kind::sink, detail::no_sink, Ps...>::type;
  using due = typename detail::pick<kind::due, never_due, Ps...>::type;
  using capture = typename detail::pick<kind::capture, stop_and_copy, Ps...>::type;
};

}  // namespace checkrow::inline v0
