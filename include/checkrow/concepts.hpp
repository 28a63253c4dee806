// The policy concepts: what a codec, tracker, strategy and sink have to be. Read this first.
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
///   commit(cursors)       the save is durable: those cursors restart at its boundary. Touches may run
///   mark(cursor, ids)     at restore: those rows count as changed since that cursor's point
///   clear()               at restore: nothing has changed
///   grow(rows)            optional, for rebind: the table has more rows now, and the new ones are changed
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

/// The optional part, which copy_on_touch needs: words of 64 rows while touches run. Marks follow what the
/// caller did before (release), and its reads come after the marks that they see (acquire).
///   take(block)             as above, by one thread a block at a time: cursors first, then the touched word
///   planned(block)          the rows of a taken block that the running save writes
///   touched_in(block)       the rows touched since the block was taken. Before it is, the two together have
///                           every row that take() will return (they are asked in this order: touched, planned)
///   touch_in(block, bits)   marks rows, and counts those newly marked, as touch() does
///   commit(cursors)         as above, with release
template <class R>
concept block_tracker = table_row_tracker<R> && requires(R rows, const R seen, std::uint64_t block) {
  { seen.planned(block) } noexcept -> std::same_as<std::uint64_t>;
  { seen.touched_in(block) } noexcept -> std::same_as<std::uint64_t>;
  { rows.touch_in(block, std::uint64_t{}) } noexcept;
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
/// writer abandons the blob. After commit() or abandon() nothing more is called. Optional: queued_bytes(), those
/// appended and not written yet, for statistics.
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
///   claim(part) -> result<claim>      the right to write that part; refused (misuse) while another holds it
///   sweep(part) -> status             by the claim's holder: removes what dead writers left behind
///   writer_bytes() -> uint64          the most memory that one writer holds
///   notes() -> vector<error>          where it fell back to something slower, since the last call
///   lease(name) -> result<lease>      the blob is there, and stays while the lease and its process live
///   remove_unleased(name) -> result<bool>   with lease(): removes it, or false where somebody has one
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

/// How the rows of a plan are read as they were at the boundary. See capture/copy_on_touch.hpp.
template <class C>
concept capture_method = std::copyable<C> && requires {
  typename C::capture_tag;
};

// clang-format on

}  // namespace checkrow::inline v0
