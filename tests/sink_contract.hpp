// What every sink has to do, whatever it is. Instantiate check_sink_contract(fresh) for a model, where
// fresh() gives a new, empty sink each time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <checkrow/concepts.hpp>
#include <optional>
#include <random>
#include <thread>

#include "catch_shim.hpp"

namespace sink_contract {

using checkrow::error_kind;
using bytes = std::vector<std::byte>;

/// Other bytes for another seed.
inline bytes pattern(std::size_t size, unsigned seed = 0) {
  bytes out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = std::byte((i * 31 + i / 251 + seed * 17) & 0xff);
  return out;
}

/// Writes a blob in one or more pieces and commits it.
template <class Sink>
checkrow::status put(Sink& store, std::string_view name, const bytes& content, std::size_t piece = 1 << 30) {
  auto writer = store.create(name);
  if (!writer) return std::move(writer).error();
  for (std::size_t at = 0; at < content.size(); at += piece) {
    const auto part = std::span(content).subspan(at, std::min(piece, content.size() - at));
    if (checkrow::status done = writer->append(part); !done) return done;
  }
  return writer->commit();
}

/// The whole blob; nothing where it cannot be read.
template <class Sink>
std::optional<bytes> get(Sink& store, std::string_view name) {
  auto reader = store.open(name);
  if (!reader) return std::nullopt;
  bytes out(reader->bytes());
  if (!reader->read(0, out)) return std::nullopt;
  return out;
}

/// What list() shows, in order of name.
template <class Sink>
std::vector<std::pair<std::string, std::uint64_t>> listed(Sink& store) {
  auto blobs = store.list();
  REQUIRE(blobs.ok());
  std::vector<std::pair<std::string, std::uint64_t>> out;
  for (const checkrow::blob& one : *blobs) out.emplace_back(one.name, one.bytes);
  std::sort(out.begin(), out.end());
  return out;
}
using names = std::vector<std::pair<std::string, std::uint64_t>>;

template <class Sink>
bool is_missing(Sink& store, std::string_view name) {
  const auto opened = store.open(name);
  return !opened && opened.error().kind == error_kind::not_found;
}

template <class Sink>
void check_commit_publishes(Sink store) {
  CHECK(listed(store).empty());
  const bytes content = pattern(100'000);
  {
    auto writer = store.create("one.segment");
    REQUIRE(writer.ok());
    CHECK(listed(store).empty());  // nothing is visible yet
    CHECK(is_missing(store, "one.segment"));
    REQUIRE(writer->append(std::span(content).first(60'000)).ok());
    REQUIRE(writer->append({}).ok());
    REQUIRE(writer->append(std::span(content).subspan(60'000)).ok());
    CHECK(listed(store).empty());
    CHECK(is_missing(store, "one.segment"));
    REQUIRE(writer->commit().ok());
    CHECK(listed(store) == names{{"one.segment", 100'000}});  // while its writer still lives
    CHECK(get(store, "one.segment") == content);
  }
  CHECK(get(store, "one.segment") == content);
  REQUIRE(put(store, "empty", {}).ok());
  CHECK(get(store, "empty") == bytes{});
  REQUIRE(put(store, "many-pieces_1", pattern(30'000, 5), 7).ok());
  CHECK(get(store, "many-pieces_1") == pattern(30'000, 5));
  CHECK(listed(store) == names{{"empty", 0}, {"many-pieces_1", 30'000}, {"one.segment", 100'000}});
}

template <class Sink>
void check_abandon_leaves_nothing(Sink store) {
  REQUIRE(put(store, "kept", pattern(10)).ok());
  const auto nothing_new = [&] {
    CHECK(listed(store) == names{{"kept", 10}});
    CHECK(is_missing(store, "gone"));
  };
  {
    auto writer = store.create("gone");
    REQUIRE(writer.ok());
    REQUIRE(writer->append(pattern(5000)).ok());
    writer->abandon();
    nothing_new();
    writer->abandon();  // twice does no harm
  }
  nothing_new();
  {
    auto writer = store.create("gone");
    REQUIRE(writer->append(pattern(5000)).ok());
  }  // dropped
  nothing_new();
  {
    auto first = store.create("gone");
    REQUIRE(first->append(pattern(50, 1)).ok());
    auto moved = *std::move(first);  // what it was moved from is dropped in silence
    REQUIRE(moved.append(pattern(50, 2)).ok());
    auto other = store.create("other");
    REQUIRE(other->append(pattern(70)).ok());
    moved = *std::move(other);  // assigned over: the blob "gone" is abandoned
    nothing_new();
    REQUIRE(moved.commit().ok());
  }
  CHECK(is_missing(store, "gone"));
  CHECK(get(store, "other") == pattern(70));
  REQUIRE(put(store, "gone", pattern(8)).ok());  // the name is still to be had
  CHECK(get(store, "gone") == pattern(8));
}

template <class Sink>
void check_ranges(Sink store) {
  const bytes content = pattern(10'000);
  REQUIRE(put(store, "blob", content).ok());
  auto reader = store.open("blob");
  REQUIRE(reader.ok());
  CHECK(reader->bytes() == content.size());
  bytes out;
  const auto reads = [&](std::uint64_t offset, std::size_t size) {
    out.assign(size, std::byte{0xee});
    return reader->read(offset, out);
  };
  for (const auto& [offset, size] : std::vector<std::pair<std::size_t, std::size_t>>{
           {0, 10'000}, {0, 1}, {9'999, 1}, {4'095, 2}, {123, 4'567}, {0, 0}, {10'000, 0}}) {
    CAPTURE(offset, size);
    REQUIRE(reads(offset, size).ok());
    CHECK(std::equal(out.begin(), out.end(), content.begin() + std::ptrdiff_t(offset)));
  }
  for (const auto& [offset, size] : std::vector<std::pair<std::uint64_t, std::size_t>>{
           {0, 10'001}, {9'999, 2}, {10'000, 1}, {1'000'000, 1}, {std::uint64_t{1} << 40, 64}}) {
    CAPTURE(offset, size);
    const checkrow::status read = reads(offset, size);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().kind == error_kind::corrupt);
  }
  CHECK_FALSE(reads(~std::uint64_t{0} - 3, 8).ok());  // where offset + size overflows
}

template <class Sink>
void check_missing(Sink store) {
  CHECK(is_missing(store, "nothing"));
  checkrow::status removed = store.remove("nothing");
  REQUIRE_FALSE(removed.ok());
  CHECK(removed.error().kind == error_kind::not_found);
  CHECK(removed.error().text().find("nothing") != std::string::npos);

  REQUIRE(put(store, "a", pattern(3)).ok());
  REQUIRE(put(store, "b", pattern(4)).ok());
  auto reader = store.open("a");
  REQUIRE(reader.ok());
  CHECK(store.remove("a").ok());
  CHECK(is_missing(store, "a"));
  CHECK(listed(store) == names{{"b", 4}});
  removed = store.remove("a");
  REQUIRE_FALSE(removed.ok());
  CHECK(removed.error().kind == error_kind::not_found);

  bytes out(3);  // whoever still reads it gets its bytes or an error, never something else
  if (reader->read(0, out)) CHECK(out == pattern(3));
  CHECK_FALSE(std::string(store.where()).empty());
}

/// Blobs are immutable: a second one of the same name replaces the first as a whole, or is refused.
template <class Sink>
void check_same_name_twice(Sink store) {
  REQUIRE(put(store, "blob", pattern(9'000, 1)).ok());
  auto reader = store.open("blob");
  auto second = store.create("blob");
  if (second) {
    checkrow::status done = second->append(pattern(5'000, 2));
    CHECK(get(store, "blob") == pattern(9'000, 1));  // until the commit
    if (done) done = second->commit();
    CHECK(get(store, "blob") == (done ? pattern(5'000, 2) : pattern(9'000, 1)));
  }
  CHECK(listed(store).size() == 1);
  bytes out(9'000);
  if (reader->read(0, out)) CHECK(out == pattern(9'000, 1));  // opened before: as it was then

  auto abandoned = store.create("blob");
  const auto before = get(store, "blob");
  if (abandoned) {
    (void)abandoned->append(pattern(10, 3));
    abandoned->abandon();
  }
  CHECK(get(store, "blob") == before);
}

template <class Sink>
void check_several_writers(Sink store) {
  constexpr unsigned thread_count = 4;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (unsigned t = 0; t < thread_count; ++t)
    threads.emplace_back([&store, &failures, t] {
      for (unsigned i = 0; i < 5; ++i)
        failures += !put(store, std::to_string(t) + "-" + std::to_string(i), pattern(3'000 + t, i), 500);
    });
  for (std::thread& one : threads) one.join();
  CHECK(failures == 0);
  CHECK(listed(store).size() == thread_count * 5);
  for (unsigned t = 0; t < thread_count; ++t)
    for (unsigned i = 0; i < 5; ++i)
      CHECK(get(store, std::to_string(t) + "-" + std::to_string(i)) == pattern(3'000 + t, i));
}

/// One reader, read from several threads at once, while others come and go.
template <class Sink>
void check_concurrent_readers(Sink store) {
  const bytes content = pattern(200'000);
  REQUIRE(put(store, "blob", content).ok());
  auto shared = store.open("blob");
  REQUIRE(shared.ok());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 50; ++i) {
        const std::size_t offset = random() % content.size(),
                          size = std::min<std::size_t>(random() % 5'000, content.size() - offset);
        bytes out(size);
        const auto expected = content.begin() + std::ptrdiff_t(offset);
        wrong += !shared->read(offset, out) || !std::equal(out.begin(), out.end(), expected);
        auto own = store.open("blob");
        wrong += !own || !own->read(offset, out) || !std::equal(out.begin(), out.end(), expected);
      }
    });
  for (std::thread& one : threads) one.join();
  CHECK(wrong == 0);
}

/// Only one writer a part; optional, see concepts.hpp. `other` is another sink of the same place.
template <class Sink>
void check_claim(Sink store, Sink other) {
  if constexpr (requires { store.claim(0u); }) {
    {
      const auto mine = store.claim(0);
      REQUIRE(mine.ok());
      for (Sink* const asked : {&store, &other}) {
        const auto refused = asked->claim(0);
        REQUIRE_FALSE(refused.ok());
        CHECK(refused.error().kind == error_kind::misuse);
        CHECK_FALSE(refused.error().next.empty());
      }
      CHECK(other.claim(1).ok());                     // other parts are free
      REQUIRE(put(other, "blob", pattern(10)).ok());  // the claim guards the part, not the place
      CHECK(get(other, "blob") == pattern(10));
    }
    auto again = other.claim(0);  // freed with the first
    REQUIRE(again.ok());
    auto moved = *std::move(again);  // and moves
    CHECK_FALSE(store.claim(0).ok());
  }
}

template <class Fresh>
void check_sink_contract(Fresh fresh) {
  SECTION("commit publishes, whole") { check_commit_publishes(fresh()); }
  SECTION("abandon and destruction leave nothing") { check_abandon_leaves_nothing(fresh()); }
  SECTION("ranges") { check_ranges(fresh()); }
  SECTION("what is missing is said to be") { check_missing(fresh()); }
  SECTION("one name twice") { check_same_name_twice(fresh()); }
  SECTION("several writers") { check_several_writers(fresh()); }
  SECTION("concurrent readers") { check_concurrent_readers(fresh()); }
  SECTION("a part has one writer") {
    const auto store = fresh();
    check_claim(store, store);
  }
}

}  // namespace sink_contract
