// Restoring: every option, in parallel, in both orders, in little memory; what it leaves for the next save.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <checkrow/detail/page_buffer.hpp>
#include <filesystem>
#include <fstream>

#include "catch_shim.hpp"
#include "temporary_folder.hpp"
#include "toy_model.hpp"

using namespace checkrow;

namespace {

/// Several saves of a toy model in one sink, and the model as it was at each step.
template <class Strategy>
struct history_of_saves {
  memory store;
  std::vector<toy::model> at;  ///< at[s - 1]: step s

  explicit history_of_saves(Strategy strategy, std::size_t steps = 4, std::uint64_t keep = 100) {
    std::mt19937 random(5);
    toy::model model;
    checkpointer ckpt{exact{}, strategy, store, options{.keep = {.last = keep}}};
    auto tables = model.attach(ckpt);
    model.train(tables, random, 400);
    for (std::size_t s = 1; s <= steps; ++s) {
      ckpt.save(s).wait();
      at.push_back(model);
      model.train(tables, random, 30);
    }
  }
};

/// A checkpointer of the toy model that restores, and looks at what the next save writes.
struct reader_of {
  memory store;
  toy::model model;
  save_figures next;
  result<std::optional<restored>> found{std::nullopt};

  reader_of(const memory& from, const restore_options& asked) {
    const auto blobs = unwrap(from.list());
    for (const blob& one : blobs) store.put(one.name, *from.find(one.name));
    checkpointer ckpt{exact{}, one_shot{}, store, options{.keep = {.last = 1000}}};
    auto tables = model.attach(ckpt);
    std::fill(model.users.begin(), model.users.end(), 77.0f);
    found = ckpt.try_restore(asked);
    if (!found.ok()) return;
    std::mt19937 random(6);
    const toy::model before = model;
    model.train(tables, random, 3);
    const ticket saved = ckpt.save(100);
    saved.wait();
    next = saved.figures();
    toy::loaded again(store);
    REQUIRE(again.found.ok());
    CHECK(again.values == model);
    model = before;
  }
};

[[nodiscard]] error refused(const memory& store, const restore_options& asked) {
  toy::model model;
  checkpointer ckpt{exact{}, store};
  model.attach(ckpt);
  const auto found = ckpt.try_restore(asked);
  REQUIRE(!found.ok());
  CHECK(!found.error().what.empty());
  CHECK(!found.error().next.empty());
  CHECK(model == toy::model{});
  return found.error();
}

}  // namespace

TEST_CASE("any number of threads, order, limit of memory and verification restore the same") {
  const history_of_saves saves{one_shot{}};
  const history_of_saves chain{consecutive{}, 8};
  for (const std::uint32_t threads : {0u, 1u, 2u, 7u})
    for (const auto order :
         {restore_order::fastest, restore_order::oldest_first, restore_order::newest_first})
      for (const std::uint64_t memory_limit :
           {std::uint64_t{0}, std::uint64_t{20000}, std::uint64_t{1} << 28})
        for (const bool verify : {false, true}) {
          const restore_options asked{.verify_first = verify,
                                      .threads = threads,
                                      .memory_limit = memory_limit,
                                      .huge_pages = true,
                                      .order = order};
          INFO(threads << " threads, order " << int(order) << ", limit " << memory_limit);
          toy::loaded one(saves.store, asked), other(chain.store, asked);
          REQUIRE((one.found.ok() && other.found.ok()));
          CHECK(one.values == saves.at.back());
          CHECK(other.values == chain.at.back());
          CHECK((*one.found)->complete);
        }
}

TEST_CASE("deltas go on from a restore in either order") {
  for (const auto order : {restore_order::oldest_first, restore_order::newest_first}) {
    const history_of_saves saves{consecutive{}, 5};
    reader_of reads(saves.store, {.order = order});
    REQUIRE(reads.found.ok());
    CHECK(reads.model == saves.at.back());
    CHECK(!reads.next.full);
    CHECK(reads.next.rows < 300);
  }
}

TEST_CASE("one table is restored alone: the rest of the model stays, and the next save is full") {
  const history_of_saves saves{one_shot{}};
  reader_of reads(saves.store, {.tables = {"items"}});
  REQUIRE(reads.found.ok());
  CHECK(!(*reads.found)->complete);
  CHECK((*reads.found)->step == 4);
  toy::model expected;
  std::fill(expected.users.begin(), expected.users.end(), 77.0f);
  expected.items = saves.at.back().items, expected.m = saves.at.back().m, expected.v = saves.at.back().v;
  CHECK(reads.model == expected);  // dense parameters and states are as they were
  CHECK(reads.next.full);
  CHECK(reads.next.rows == toy::model::users_rows + toy::model::items_rows);
}

TEST_CASE("a table is restored into a model that lacks the others") {
  const history_of_saves saves{one_shot{}};
  std::vector<float> items(toy::model::items_rows * toy::model::items_dim);
  checkpointer ckpt{exact{}, saves.store};
  ckpt.table("items", items, toy::model::items_dim);
  const auto whole = ckpt.try_restore();
  REQUIRE(!whole.ok());
  CHECK(whole.error().kind == error_kind::misuse);
  CHECK(ckpt.try_restore({.tables = {"items"}}).error().kind == error_kind::misuse);  // columns m and v
  CHECK(ckpt.restore({.tables = {"items"}, .columns = {"weights"}}));
  CHECK(items == saves.at.back().items);
}

TEST_CASE("a range of rows is restored, whatever chunks and segments it lies in") {
  const history_of_saves saves{consecutive{}, 6};
  for (const auto order : {restore_order::oldest_first, restore_order::newest_first})
    for (const auto& [first, count] :
         {std::pair<std::uint64_t, std::uint64_t>{0, 1}, {0, 300}, {299, 1}, {63, 2}, {100, 111}}) {
      reader_of reads(saves.store, {.tables = {"users"}, .rows = row_range{first, count}, .order = order});
      REQUIRE(reads.found.ok());
      toy::model expected;
      std::fill(expected.users.begin(), expected.users.end(), 77.0f);
      const toy::model& saved = saves.at.back();
      for (std::uint64_t row = first; row < first + count; ++row) {
        std::copy_n(&saved.users[row * 6], 6, &expected.users[row * 6]);
        expected.adagrad[row] = saved.adagrad[row];
        expected.counts[row] = saved.counts[row];
      }
      CHECK(reads.model == expected);
      CHECK(reads.next.full);
    }
  const error beyond = refused(saves.store, {.tables = {"users"}, .rows = row_range{299, 2}});
  CHECK(beyond.kind == error_kind::misuse);
  CHECK(beyond.where == "table users");
  CHECK(refused(saves.store, {.rows = row_range{~std::uint64_t{0}, 2}}).kind == error_kind::misuse);
  CHECK(refused(saves.store, {.rows = row_range{0, ~std::uint64_t{0}}}).kind == error_kind::misuse);
  CHECK(refused(saves.store, {.rows = row_range{0, 0}}).kind == error_kind::misuse);
  CHECK(refused(saves.store, {.rows = row_range{0, 100}}).where == "table items");  // it has 77
}

TEST_CASE("tables are restored under other names, also swapped") {
  memory store;
  std::vector<float> a(80, 1), b(80, 2);
  {
    checkpointer ckpt{exact{}, store};
    ckpt.table("a", a, 4);
    ckpt.table("b", b, 4);
    ckpt.save(1).wait();
  }
  std::vector<float> x(80), y(80);
  const auto restore = [&](const char* first, const char* second, const restore_options& asked) {
    std::fill(x.begin(), x.end(), 0.0f), std::fill(y.begin(), y.end(), 0.0f);
    checkpointer ckpt{exact{}, store, options{.keep = {.last = 100}}};
    ckpt.table(first, x, 4);
    if (second != nullptr) ckpt.table(second, y, 4);
    return ckpt.try_restore(asked);
  };
  CHECK(restore("a", "b", {.rename = {{"a", "b"}, {"b", "a"}}}).ok());
  CHECK((x == b && y == a));
  CHECK(restore("c", "b", {.rename = {{"a", "c"}}}).ok());
  CHECK((x == a && y == b));
  CHECK(restore("b", nullptr, {.tables = {"b"}, .rename = {{"a", "b"}}}).ok());  // its own b is skipped
  CHECK(x == a);
  const auto misuse = [](const auto& found) {
    return !found.ok() && found.error().kind == error_kind::misuse;
  };
  CHECK(misuse(restore("b", nullptr, {.rename = {{"a", "b"}}})));          // the saved b has no place
  CHECK(misuse(restore("a", "b", {.rename = {{"c", "b"}}})));              // not saved
  CHECK(misuse(restore("a", "b", {.rename = {{"a", "c"}}})));              // not in the model
  CHECK(misuse(restore("a", "b", {.rename = {{"a", "b"}, {"b", "b"}}})));  // two into one
  CHECK(misuse(restore("a", "b", {.rename = {{"a", "a"}, {"a", "b"}}})));  // one into two
  CHECK(misuse(restore("a", "b", {.tables = {"c"}})));                     // no such table
  CHECK(misuse(restore("a", "b", {.tables = {"a", "a"}})));                // twice
  CHECK(misuse(restore("a", "b", {.columns = {"wieghts"}})));              // no such column
  CHECK(misuse(restore("a", "b", {.columns = {"weights", "weights"}})));   // twice
}

TEST_CASE("a warm start: the model has more rows than were saved, and the new ones stay as they are") {
  const history_of_saves saves{one_shot{}};
  constexpr std::size_t more = 400;
  std::vector<float> users(more * 6, 9), adagrad(more, 9);
  std::vector<std::int64_t> counts(more, 9);
  memory store = saves.store;
  checkpointer ckpt{exact{}, one_shot{}, store};
  auto table = ckpt.table("users", users, 6, {.columns = {{"counts", counts}, {"adagrad", adagrad}}});
  const auto strict = ckpt.try_restore({.tables = {"users"}});
  REQUIRE(!strict.ok());
  CHECK(strict.error().kind == error_kind::misuse);
  const auto found = ckpt.restore({.tables = {"users"}, .allow_more_rows = true});
  REQUIRE(found);
  CHECK(!found->complete);
  CHECK(std::equal(saves.at.back().users.begin(), saves.at.back().users.end(), users.begin()));
  CHECK(std::all_of(users.begin() + 300 * 6, users.end(), [](float v) { return v == 9; }));
  table.touch(std::vector<int>{399});
  const ticket saved = ckpt.save(9);
  saved.wait();
  CHECK(saved.figures().full);
  CHECK(saved.figures().rows == more);
  users.resize(6 * 299), adagrad.resize(299), counts.resize(299);  // fewer rows are never enough
  checkpointer small{exact{}, saves.store};
  small.table("users", users, 6, {.columns = {{"counts", counts}, {"adagrad", adagrad}}});
  CHECK(small.try_restore({.tables = {"users"}, .allow_more_rows = true}).error().kind == error_kind::misuse);
}

TEST_CASE("the checkpoint of a step: the newest of that step, or an error that says which there are") {
  const history_of_saves saves{one_shot{}, 12};
  for (const std::uint64_t step : {1, 5, 12}) {
    reader_of reads(saves.store, {.step = step});
    REQUIRE(reads.found.ok());
    CHECK(reads.model == saves.at[step - 1]);
    CHECK((*reads.found)->step == step);
  }
  const error none = refused(saves.store, {.step = 13});
  CHECK(none.kind == error_kind::not_found);
  CHECK(none.next == "there are, newest first, steps 12, 11, 10, 9, 8, 7, 6, 5, ...");
  CHECK(refused(memory{}, {.step = 1}).kind == error_kind::not_found);
}

TEST_CASE("a rollback to an older step goes on as the newest, by sequence") {
  const history_of_saves saves{one_shot{}, 5};
  toy::model model;
  checkpointer ckpt{exact{}, one_shot{}, saves.store, options{.keep = {.last = 100}}};
  auto tables = model.attach(ckpt);
  REQUIRE(ckpt.restore({.step = 2}));
  std::mt19937 random(9);
  model.train(tables, random, 4);
  const ticket saved = ckpt.save(3);
  saved.wait();
  CHECK(!saved.figures().full);  // it builds on the checkpoint of step 2
  toy::loaded newest(saves.store), third(saves.store, {.step = 3});
  CHECK(newest.values == model);
  CHECK(third.values == model);  // of two of that step the newer
  CHECK((*newest.found)->step == 3);
}

TEST_CASE("a damaged chunk in the midst of a restore: the next candidate rewrites everything") {
  const history_of_saves saves{full{}, 3};
  for (const std::uint32_t threads : {1u, 4u}) {
    memory damaged;
    const auto blobs = unwrap(saves.store.list());
    for (const blob& one : blobs) {
      auto bytes = *saves.store.find(one.name);
      if (one.name.starts_with("000000000003") && one.name.ends_with(".segment"))
        bytes[bytes.size() * 2 / 3] ^= std::byte{4};
      damaged.put(one.name, std::move(bytes));
    }
    toy::loaded read(damaged, {.verify_first = false, .threads = threads});
    REQUIRE(read.found.ok());
    CHECK((*read.found)->step == 2);
    CHECK((*read.found)->passed_over.size() == 1);
    CHECK(read.values == saves.at[1]);
  }
}

TEST_CASE("progress is told in bytes that grow up to their total") {
  const history_of_saves saves{one_shot{}};
  for (const bool verify : {false, true}) {
    std::vector<event> told;
    toy::model model;
    checkpointer ckpt{exact{}, saves.store, observer{[&](const event& what) {
                        if (what.kind == event_kind::progress) told.push_back(what);
                      }}};
    model.attach(ckpt);
    REQUIRE(ckpt.restore({.verify_first = verify, .memory_limit = 0}));
    REQUIRE(told.size() > 1);
    for (std::size_t i = 1; i < told.size(); ++i) CHECK(told[i - 1].bytes <= told[i].bytes);
    CHECK(told.back().bytes == told.back().total);
    CHECK(told.back().total > 0);
  }
}

TEST_CASE("a due timer follows a restore of the whole model only") {
  const history_of_saves saves{one_shot{}, 4};
  for (const bool whole : {true, false}) {
    toy::model model;
    checkpointer ckpt{exact{}, saves.store, every{.batches = 3}};
    model.attach(ckpt);
    REQUIRE(ckpt.restore({.tables = whole ? std::vector<std::string>{} : std::vector<std::string>{"users"}}));
    CHECK(ckpt.due(5) == !whole);
  }
}

TEST_CASE("table_memory is zeroed, at a huge page, and a table as any other") {
  memory store;
  table_memory<float> weights(std::size_t{3} << 20);
  CHECK(reinterpret_cast<std::uintptr_t>(weights.data()) % (std::size_t{2} << 20) == 0);
  CHECK(std::all_of(weights.begin(), weights.end(), [](float v) { return v == 0; }));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = float(i % 1000);
  {
    checkpointer ckpt{exact{}, store};
    ckpt.table("t", weights, 64);
    ckpt.save(1).wait();
  }
  table_memory<float> other(weights.size());
  table_memory<float> moved = std::move(other);
  checkpointer ckpt{exact{}, store};
  ckpt.table("t", moved, 64);
  REQUIRE(ckpt.restore());
  CHECK(std::equal(weights.begin(), weights.end(), moved.begin()));
  CHECK(table_memory<float>(0).size() == 0);
}

namespace {

/// A tracker that cannot grow.
struct fixed_rows {
  class table_rows {
   public:
    table_rows(const fixed_rows&, std::uint64_t rows, cursor_set kept) : inner_(bitmap{}, rows, kept) {}
    template <class Id>
    std::size_t touch(std::span<const Id> ids) noexcept {
      return inner_.touch(ids);
    }
    void touch_range(std::uint64_t first, std::uint64_t n) noexcept { inner_.touch_range(first, n); }
    [[nodiscard]] std::uint64_t dirty() const noexcept { return inner_.dirty(); }
    void begin(row_selection rows, cursor since) noexcept { inner_.begin(rows, since); }
    [[nodiscard]] std::uint64_t blocks() const noexcept { return inner_.blocks(); }
    [[nodiscard]] std::uint64_t take(std::uint64_t block) noexcept { return inner_.take(block); }
    void commit(cursor_set moved) noexcept { inner_.commit(moved); }
    void mark(cursor since, std::span<const std::uint64_t> ids) noexcept { inner_.mark(since, ids); }
    void clear() noexcept { inner_.clear(); }

   private:
    bitmap::table_rows inner_;
  };
};

}  // namespace

TEST_CASE("a table that moves goes on with its deltas, through the same handles") {
  memory store;
  std::vector<float> weights(100 * 4, 1), adagrad(100, 1), other;
  checkpointer ckpt{exact{}, one_shot{}, store, options{.audit_rows = 8}};
  auto table = ckpt.table("t", weights, 4, {.columns = {{"adagrad", adagrad}}});
  const auto copy = table;
  ckpt.save(1);  // rebind waits for it
  table.touch(std::vector<int>{3});
  weights[3 * 4] = 5;
  other = weights;
  std::vector<float> other_adagrad = adagrad;
  table.rebind(other, {{"adagrad", other_adagrad}});
  std::fill(weights.begin(), weights.end(), -1.0f);
  const ticket saved = ckpt.save(2);
  saved.wait();
  CHECK(!saved.figures().full);
  CHECK(saved.figures().rows == 1);
  CHECK(copy.rows() == 100);
  std::vector<float> read(weights.size()), read_adagrad(100);
  checkpointer reader{exact{}, store};
  reader.table("t", read, 4, {.columns = {{"adagrad", read_adagrad}}});
  REQUIRE(reader.restore());
  CHECK(read == other);
}

namespace {

template <class Capture>
void grows(Capture capture, std::size_t before) {
  memory store;
  std::vector<float> weights(before * 4, 1);
  checkpointer ckpt{exact{}, one_shot{}, store, capture};
  auto table = ckpt.table("t", weights, 4);
  ckpt.save(1).wait();
  std::vector<float> larger(300 * 4, 2);
  std::copy(weights.begin(), weights.end(), larger.begin());
  table.rebind(larger);
  CHECK(table.rows() == 300);
  CHECK(table.dirty_rows() == 300 - before);
  const ticket full = ckpt.save(2);
  table.touch(std::vector<int>{299, 1});  // beside the save, where that is copied on touch
  larger[299 * 4] = larger[4] = 7;
  full.wait();
  CHECK(full.figures().full);
  CHECK(full.figures().rows == 300);
  const ticket delta = ckpt.save(3);
  delta.wait();
  CHECK(!delta.figures().full);
  CHECK(delta.figures().rows == 2);
  std::vector<float> read(larger.size(), 9);
  checkpointer reader{exact{}, store};
  reader.table("t", read, 4);
  REQUIRE(reader.restore());
  CHECK(read == larger);
  REQUIRE(reader.restore({.step = 2}));
  CHECK(read[299 * 4] == 2);
  CHECK(reader.try_restore({.step = 1}).error().kind == error_kind::not_found);  // retention keeps two
}

}  // namespace

TEST_CASE("a table that grows: new rows are dirty, the next save is full, deltas follow") {
  for (const std::size_t before : {0u, 63u, 64u, 100u}) {
    grows(stop_and_copy{}, before);
    grows(copy_on_touch{}, before);
  }
}

TEST_CASE("rebind refuses what does not fit, and changes nothing") {
  std::vector<float> weights(100 * 4), adagrad(100), fewer(99 * 4), odd(401), more(101 * 4),
      adagrad_more(101);
  std::vector<double> doubles(100 * 4);
  checkpointer ckpt{exact{}, memory{}};
  auto table = ckpt.table("t", weights, 4, {.columns = {{"adagrad", adagrad}}});
  const auto kind = [](const status& done) {
    return done.ok() ? std::optional<error_kind>() : done.error().kind;
  };
  CHECK(kind(table.try_rebind(fewer)) == error_kind::misuse);
  CHECK(kind(table.try_rebind(odd, {{"adagrad", adagrad}})) == error_kind::misuse);
  CHECK(kind(table.try_rebind(more)) == error_kind::misuse);                          // a column is missing
  CHECK(kind(table.try_rebind(more, {{"adagrad", adagrad}})) == error_kind::misuse);  // of 100 rows
  CHECK(kind(table.try_rebind(more, {{"moment", adagrad_more}})) == error_kind::misuse);
  CHECK(kind(table.try_rebind(doubles, {{"adagrad", adagrad}})) == error_kind::misuse);
  {
    auto batch = ckpt.batch();
    CHECK(kind(table.try_rebind(more, {{"adagrad", adagrad_more}})) == error_kind::misuse);
  }
  CHECK(table.rows() == 100);
  CHECK(table.try_rebind(more, {{"adagrad", adagrad_more}}).ok());
  CHECK(table.rows() == 101);

  checkpointer fixed{exact{}, fixed_rows{}, memory{}};
  auto bound = fixed.table("t", weights, 4);
  CHECK(kind(bound.try_rebind(more)) == error_kind::unsupported);
  CHECK(bound.rows() == 100);
  CHECK(bound.try_rebind(std::span(more).first(400)).ok());
}

TEST_CASE("chunks of rows that were copied aside overlap others of their segment: any order, any range") {
  constexpr std::size_t rows = 20000, dim = 16;
  memory store;
  std::vector<float> weights(rows * dim), at_boundary;
  std::mt19937 random(4);
  {
    checkpointer ckpt{exact{}, consecutive{}, throttled<memory>{store, 20e6}, copy_on_touch{}};
    auto table = ckpt.table("t", weights, dim);
    for (std::uint64_t step = 1; step <= 4; ++step) {
      at_boundary = weights;
      const ticket saved = ckpt.save(step);
      for (int batch = 0; batch < 60; ++batch) {
        std::vector<std::uint32_t> ids(40);
        for (auto& id : ids) id = std::uint32_t(random() % rows);
        table.touch(ids);
        for (const auto id : ids) weights[id * dim + step] += float(batch + 1);
      }
      saved.wait();
    }
  }
  for (const auto order : {restore_order::oldest_first, restore_order::newest_first})
    for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, rows}, {777, 12345}}) {
      std::vector<float> read(rows * dim, -1), expected = read;
      std::copy_n(&at_boundary[first * dim], count * dim, &expected[first * dim]);
      checkpointer ckpt{exact{}, store};
      ckpt.table("t", read, dim);
      REQUIRE(ckpt.restore({.rows = row_range{first, count}, .threads = 3, .order = order}));
      CHECK(read == expected);
    }
}

TEST_CASE("a large file reads the same from the cache, past it, and at any place") {
  const temporary_folder folder;
  for (const std::string& place : {folder.path(), std::string{"/dev/shm"}}) {  // which may refuse O_DIRECT
    if (!std::filesystem::is_directory(place)) continue;
    const std::string path = place + "/checkrow-test-" + std::to_string(::getpid());
    std::mt19937_64 random(1);
    std::vector<std::byte> content((std::size_t{5} << 20) + 1234);
    for (std::byte& one : content) one = std::byte(random());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), std::streamsize(content.size()));
    const auto reader = unwrap(detail::file_reader::open(path));
    REQUIRE(reader.bytes() == content.size());
    detail::page_buffer buffer;
    REQUIRE(buffer.reserve(content.size() + 64));
    for (int i = 0; i < 60; ++i) {
      const int file = ::open(path.c_str(), O_RDONLY);
      if (i % 2 == 0) ::fsync(file), ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
      ::close(file);
      const std::size_t grain = i % 3 != 0 ? 4096 : 1, offset = random() % content.size() / grain * grain;
      std::size_t bytes = i % 5 == 0 ? content.size() - offset : random() % (content.size() - offset + 1);
      if (i % 4 == 1) bytes = bytes / 4096 * 4096;
      const std::span<std::byte> out(buffer.data() + (i % 7 == 0 ? 8 : 0), bytes);
      REQUIRE(reader.read(offset, out).ok());
      REQUIRE(std::equal(out.begin(), out.end(), content.begin() + std::ptrdiff_t(offset)));
    }
    const std::size_t last = content.size() / 4096 * 4096;
    CHECK(reader.read(last, {buffer.data(), 4096}).error().kind == error_kind::corrupt);
    CHECK(reader.read(4096, {buffer.data(), last}).error().kind == error_kind::corrupt);
    std::filesystem::remove(path);
  }
}
