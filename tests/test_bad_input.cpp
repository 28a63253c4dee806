// What bad input gets: a typed error, nothing lost, nothing half-applied.
#include <filesystem>
#include <thread>

#include "catch_shim.hpp"
#include "toy_model.hpp"

using namespace checkrow;

namespace {

/// Two checkpoints in the sink, a base and a delta on it; the models that they hold.
struct two_saves {
  memory store;
  toy::model first, second;

  two_saves() {
    std::mt19937 random(11);
    toy::model model;
    checkpointer ckpt{exact{}, one_shot{}, store};
    auto tables = model.attach(ckpt);
    model.train(tables, random, 50);
    ckpt.save(1).wait();
    first = model;
    model.train(tables, random);
    ckpt.save(2).wait();
    second = model;
  }

  [[nodiscard]] std::string blob_of(const std::string& sequence, const std::string& kind) const {
    const auto blobs = unwrap(store.list());
    for (const blob& one : blobs)
      if (one.name.starts_with("00000000000" + sequence) && one.name.ends_with(kind)) return one.name;
    FAIL("no such blob");
    return {};
  }
};

/// A model whose contents nobody may touch, restored from a damaged sink: either a checkpoint that was really
/// saved, or an error and the model as it was.
void restores_something_true(memory store, const two_saves& saves, bool newest_is_damaged) {
  toy::model model;
  model.users.assign(model.users.size(), 123);
  const toy::model before = model;
  checkpointer ckpt{exact{}, store};
  model.attach(ckpt);
  const auto found = ckpt.try_restore({.verify_first = true});
  if (!found.ok()) {
    REQUIRE(found.error().kind == error_kind::corrupt);
    REQUIRE(model == before);
  } else {
    REQUIRE(found->has_value());
    REQUIRE((*found)->step == (newest_is_damaged ? 1 : 2));
    REQUIRE(model == (newest_is_damaged ? saves.first : saves.second));
    REQUIRE((*found)->passed_over.empty() == !newest_is_damaged);
  }
}

[[nodiscard]] error refusal(auto&& checkpointer, const restore_options& asked = {}) {
  const auto found = checkpointer.try_restore(asked);
  REQUIRE(!found.ok());
  CHECK(!found.error().what.empty());
  CHECK(!found.error().next.empty());
  return found.error();
}

}  // namespace

TEST_CASE("any byte of any blob flipped: a true checkpoint is restored, or none and the model is as it was") {
  const two_saves saves;
  const auto blobs = unwrap(saves.store.list());
  int unneeded = 0;
  for (const blob& one : blobs) {
    const bool newest = one.name.starts_with("000000000002");
    const auto original = *saves.store.find(one.name);
    const std::size_t step = original.size() > 4000 ? 17 : 1;
    for (std::size_t at = 0; at < original.size(); at += step) {
      memory damaged;
      for (const blob& other : blobs) damaged.put(other.name, *saves.store.find(other.name));
      auto bytes = original;
      bytes[at] ^= std::byte(1u << (at % 8));
      damaged.put(one.name, std::move(bytes));
      const bool manifest_of_older = !newest && one.name.ends_with(".manifest");
      INFO(one.name << " at " << at);
      if (!newest &&
          !manifest_of_older) {  // the base, on which both stand; only its dense chunks are superseded
        toy::model model;
        const toy::model before = model;
        checkpointer ckpt{exact{}, damaged};
        model.attach(ckpt);
        const auto found = ckpt.try_restore({.verify_first = true});
        if (found.ok())
          ++unneeded;
        else
          REQUIRE(found.error().kind == error_kind::corrupt);
        REQUIRE(model == (found.ok() ? saves.second : before));
      } else {
        restores_something_true(damaged, saves, newest);
      }
    }
  }
  CHECK(unneeded < 1200 / 17);  // the base's dense parameter and state, with their heads
}

TEST_CASE("any blob truncated, missing or swapped with another one") {
  const two_saves saves;
  const auto blobs = unwrap(saves.store.list());
  const auto copy = [&] {
    memory out;
    for (const blob& one : blobs) out.put(one.name, *saves.store.find(one.name));
    return out;
  };
  const std::string newest = saves.blob_of("2", ".segment"), manifest = saves.blob_of("2", ".manifest");
  for (const std::string& name : {newest, manifest}) {
    const auto original = *saves.store.find(name);
    for (std::size_t size = 0; size < original.size(); size += 1 + size / 20) {
      memory damaged = copy();
      damaged.put(name, memory::bytes(original.begin(), original.begin() + std::ptrdiff_t(size)));
      restores_something_true(damaged, saves, true);
    }
    memory longer = copy();
    auto bytes = original;
    bytes.push_back(std::byte{0});
    longer.put(name, bytes);
    restores_something_true(longer, saves, true);
  }
  {
    memory without = copy();
    REQUIRE(without.remove(newest).ok());
    restores_something_true(without, saves, true);
  }
  {
    memory without = copy();
    REQUIRE(without.remove(saves.blob_of("1", ".segment")).ok());
    toy::model model;
    checkpointer ckpt{exact{}, without};
    model.attach(ckpt);
    CHECK(refusal(ckpt).kind == error_kind::not_found);
  }
  {
    const two_saves others;  // the same model, saved by another run
    memory swapped = copy();
    swapped.put(newest, *others.store.find(others.blob_of("2", ".segment")));
    restores_something_true(swapped, saves, true);
    memory manifests = copy();
    manifests.put(manifest, *others.store.find(others.blob_of("2", ".manifest")));
    restores_something_true(manifests, saves, true);
    memory within = copy();
    within.put(manifest, *saves.store.find(saves.blob_of("1", ".manifest")));
    restores_something_true(within, saves, true);
  }
}

TEST_CASE("without verify_first a damaged chunk is found late, and an older checkpoint rewrites everything") {
  const two_saves saves;
  const std::string newest = saves.blob_of("2", ".segment"), base = saves.blob_of("1", ".segment");
  auto bytes = *saves.store.find(newest);
  bytes[bytes.size() / 2] ^= std::byte{1};
  memory damaged = saves.store;
  damaged.put(newest, bytes);
  toy::loaded restored(damaged, {.verify_first = false});
  REQUIRE(restored.found.ok());
  CHECK((*restored.found)->step == 1);
  CHECK(restored.values == saves.first);

  bytes = *saves.store.find(base);
  bytes[bytes.size() / 2] ^= std::byte{1};
  damaged.put(base, bytes);
  toy::loaded lost(damaged, {.verify_first = false});
  REQUIRE(!lost.found.ok());
  CHECK(lost.found.error().kind == error_kind::corrupt);
  CHECK(lost.found.error().next.find("undefined") != std::string::npos);
}

TEST_CASE("a model of another schema is refused, and left as it was") {
  const two_saves saves;
  toy::model model;
  const auto expect = [&](const char* what, auto&& attach) {
    INFO(what);
    checkpointer ckpt{exact{}, saves.store};
    attach(ckpt);
    const error refused = refusal(ckpt);
    CHECK(refused.kind == error_kind::misuse);
    CHECK(!refused.where.empty());
    CHECK(model == toy::model{});
  };
  const auto rest = [&](auto& ckpt) {
    ckpt.table("items", model.items, 3, {.columns = {{"m", model.m}, {"v", model.v}}});
    ckpt.dense("mlp", model.mlp);
    ckpt.state("reader", model.reader);
  };
  const auto users = [&](auto& ckpt) {
    ckpt.table("users", model.users, 6, {.columns = {{"counts", model.counts}, {"adagrad", model.adagrad}}});
  };
  expect("dim", [&](auto& ckpt) {
    rest(ckpt);
    static std::vector<float> wide(300 * 12);
    ckpt.table("users", wide, 12, {.columns = {{"counts", model.counts}, {"adagrad", model.adagrad}}});
  });
  expect("rows", [&](auto& ckpt) {
    rest(ckpt);
    ckpt.table("users", std::span(model.users).first(299 * 6), 6,
               {.columns = {{"counts", std::span(model.counts).first(299)},
                            {"adagrad", std::span(model.adagrad).first(299)}}});
  });
  expect("element type", [&](auto& ckpt) {
    rest(ckpt);
    static std::vector<double> counts(300);
    ckpt.table("users", model.users, 6, {.columns = {{"counts", counts}, {"adagrad", model.adagrad}}});
  });
  expect("a column missing", [&](auto& ckpt) {
    rest(ckpt);
    ckpt.table("users", model.users, 6, {.columns = {{"counts", model.counts}}});
  });
  expect("a column more", [&](auto& ckpt) {
    rest(ckpt);
    static std::vector<float> more(300);
    ckpt.table("users", model.users, 6,
               {.columns = {{"counts", model.counts}, {"adagrad", model.adagrad}, {"more", more}}});
  });
  expect("a table missing", rest);
  expect("a table more", [&](auto& ckpt) {
    rest(ckpt);
    users(ckpt);
    static std::vector<float> more(300);
    ckpt.table("more", more, 3);
  });
  expect("a dense parameter of another size", [&](auto& ckpt) {
    users(ckpt);
    ckpt.table("items", model.items, 3, {.columns = {{"m", model.m}, {"v", model.v}}});
    ckpt.dense("mlp", std::span(model.mlp).first(40));
    ckpt.state("reader", model.reader);
  });
  expect("a state missing", [&](auto& ckpt) {
    users(ckpt);
    ckpt.table("items", model.items, 3, {.columns = {{"m", model.m}, {"v", model.v}}});
    ckpt.dense("mlp", model.mlp);
  });
  expect("a state of another size", [&](auto& ckpt) {
    users(ckpt);
    ckpt.table("items", model.items, 3, {.columns = {{"m", model.m}, {"v", model.v}}});
    ckpt.dense("mlp", model.mlp);
    ckpt.state("reader", model.reader.position);
  });
}

TEST_CASE("restore options that are not built yet are refused by name, before anything is read") {
  const two_saves saves;
  toy::model model;
  checkpointer ckpt{exact{}, saves.store};
  model.attach(ckpt);
  CHECK(refusal(ckpt, {.consistency = consistency_level::freshest}).kind == error_kind::unsupported);
  CHECK(model == toy::model{});
}

TEST_CASE("registration is refused where it cannot be saved, and nothing is registered") {
  memory store;
  checkpointer ckpt{adaptive<4>{}, store};
  std::vector<float> weights(60), column_of(10);
  std::vector<double> doubles(60);
  REQUIRE(ckpt.try_table("users", weights, 6).ok());
  const auto misuse = [](const auto& refused) {
    return !refused.ok() && refused.error().kind == error_kind::misuse;
  };
  CHECK(misuse(ckpt.try_table("users", weights, 6)));  // two tables of one name
  CHECK(misuse(ckpt.try_table("", weights, 6)));       // no name
  CHECK(misuse(ckpt.try_table("a\nb", weights, 6)));   // a name that no file or message should hold
  CHECK(misuse(ckpt.try_table("b\xff", weights, 6)));  // no UTF-8
  CHECK(misuse(ckpt.try_table("c", weights, 0)));      // no dim
  CHECK(misuse(ckpt.try_table("d", weights, 7)));      // 60 weights are no rows of 7
  CHECK(misuse(ckpt.try_table("e", doubles, 6)));      // adaptive<4> encodes float32
  CHECK(misuse(ckpt.try_table("f", weights, 6, {.columns = {{"m", std::span(column_of).first(9)}}})));
  CHECK(misuse(ckpt.try_table("g", weights, 6, {.columns = {{"m", column_of}, {"m", column_of}}})));
  CHECK(misuse(ckpt.try_table("h", weights, 6, {.columns = {{"weights", column_of}}})));
  CHECK(misuse(
      ckpt.try_table("i", strided<float>{weights.data(), 8, 10}, 6)));  // the stride is shorter than a row
  REQUIRE(ckpt.try_dense("mlp", weights).ok());
  CHECK(misuse(ckpt.try_dense("mlp", weights)));
  int state = 0;
  REQUIRE(ckpt.try_state("s", state).ok());
  CHECK(misuse(ckpt.try_state("s", state)));
  REQUIRE(ckpt.try_table("again", weights, 6).ok());
  ckpt.save(1).wait();
}

TEST_CASE("row ids out of range are named, whatever their type, and the model can still be saved") {
  memory store;
  std::vector<float> weights(100 * 2);
  checkpointer ckpt{exact{}, store};
  auto table = ckpt.table("t", weights, 2);
  const auto refused = [&](auto ids) {
    const status touched = table.try_touch(ids);
    CHECK_THROWS_AS(table.touch(ids), misuse_error);
    return !touched.ok() && touched.error().what.find("100") != std::string::npos;
  };
  CHECK(refused(std::vector<std::int32_t>{1, 100}));
  CHECK(refused(std::vector<std::int64_t>{-100}));
  CHECK(refused(std::vector<std::uint32_t>{100}));
  CHECK(refused(std::vector<std::uint64_t>{std::uint64_t{100} << 32 | 100, 3}) == false);  // named in full
  CHECK(!table.try_touch_range(99, 2).ok());
  CHECK(!table.try_touch_range(~std::uint64_t{0}, 2).ok());
  CHECK(table.try_touch_range(100, 0).ok());
  CHECK(table.try_touch(std::vector<int>{}).ok());  // an empty batch
  CHECK(table.dirty_rows() == 1);                   // the id before the first bad one
  ckpt.save(1).wait();
}

TEST_CASE("odd shapes: no rows, dim 1, dim 10007, nothing dirty, nothing registered") {
  memory store;
  std::vector<float> none, one(5, 1.5f), large(3 * 10007), adam;
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = float(i);
  const auto attach = [&](auto& ckpt, auto& a, auto& b, auto& c) {
    ckpt.table("none", a, 8, {.columns = {{"adam", adam, 16}}});
    ckpt.table("one", b, 1);
    return ckpt.table("large", c, 10007);
  };
  {
    checkpointer ckpt{exact{}, consecutive{}, store};
    auto table = attach(ckpt, none, one, large);
    ckpt.save(1).wait();
    ckpt.save(2).wait();  // nothing dirty
    large[20014] = -1;
    table.touch(std::vector{2});
    const ticket saved = ckpt.save(3);
    saved.wait();
    CHECK(saved.figures().rows == 1);
  }
  std::vector<float> none_again, one_again(5), large_again(3 * 10007);
  checkpointer ckpt{exact{}, store};
  attach(ckpt, none_again, one_again, large_again);
  REQUIRE(ckpt.restore()->step == 3);
  CHECK((one_again == one && large_again == large));

  memory empty;
  checkpointer nothing{empty};
  CHECK(!nothing.restore().has_value());  // nothing was ever saved
  nothing.save(7).wait();
  CHECK(nothing.restore()->step == 7);
}

TEST_CASE("a sink that fails at any call: the save fails with its error, the next one has everything") {
  for (long failing = 1; failing < 40; ++failing) {
    toy::faulty store;
    std::mt19937 random{unsigned(failing)};
    toy::model model;
    std::vector<error_kind> failures;
    checkpointer ckpt{exact{}, consecutive{}, store, observer{[&](const event& e) {
                        if (e.kind == event_kind::failed) failures.push_back(e.why->kind);
                      }}};
    auto tables = model.attach(ckpt);
    ckpt.save(1).wait();
    const toy::model first = model;
    model.train(tables, random);
    *store.calls_left = failing;
    const ticket saved = ckpt.save(2);
    const bool failed = !saved.try_wait().ok();
    const bool in_collection = *store.calls_left == 0 && !failed;
    *store.calls_left = -1;
    REQUIRE(failed == !failures.empty());
    if (failed) {
      CHECK(saved.error()->kind == error_kind::io);
      CHECK(saved.error()->os_error == 28);
      CHECK_THROWS_AS(saved.wait(), io_error);
      CHECK_THROWS_AS(ckpt.finish(), io_error);
      toy::loaded before(store);
      CHECK((*before.found)->step == 1);
      CHECK(before.values == first);
      const auto blobs = unwrap(store.list());
      CHECK(blobs.size() == 2);  // nothing half-written is left
    }
    model.train(tables, random, 3);
    const ticket again = ckpt.save(3);
    again.wait();
    CHECK_NOTHROW(ckpt.finish());
    toy::loaded after(store);
    CHECK((*after.found)->step == 3);
    CHECK(after.values == model);
    if (!failed && !in_collection) break;  // the save makes fewer calls than that
    REQUIRE(failing < 39);
  }
}

TEST_CASE("one part has one writer; readers go on") {
  const std::string folder = (std::filesystem::temp_directory_path() / "checkrow_two_writers").string();
  std::filesystem::remove_all(folder);
  toy::model model, other;
  {
    checkpointer first{exact{}, directory{folder, sync_discipline::none}};
    model.attach(first);
    first.save(1).wait();
    checkpointer second{exact{}, directory{folder, sync_discipline::none}};
    other.attach(second);
    REQUIRE(second.restore()->step == 1);  // reading needs no right
    const ticket refused = second.save(2);
    REQUIRE(!refused.try_wait().ok());
    CHECK(refused.error()->kind == error_kind::misuse);
    CHECK_THROWS_AS(second.finish(), misuse_error);
    first.save(3).wait();
    REQUIRE(second.restore()->step == 3);
  }
  checkpointer third{exact{}, directory{folder, sync_discipline::none}};
  model.attach(third);
  third.save(4).wait();
  third.finish();
  std::filesystem::remove_all(folder);
}

TEST_CASE("what observers and callbacks throw stays where it was thrown") {
  memory store;
  toy::model model;
  struct {
    bool fails = false;
    std::vector<std::byte> save_state() const {
      if (fails) throw std::runtime_error("the reader is not at a boundary");
      return {};
    }
    void load_state(std::span<const std::byte>) const {
      if (fails) throw 42;
    }
  } reader;
  checkpointer ckpt{exact{}, store, observer{[](const event&) { throw std::runtime_error("observer"); }}};
  auto tables = model.attach(ckpt);
  ckpt.state("fails", reader);
  ckpt.save(1).wait();
  reader.fails = true;
  std::mt19937 random(1);
  model.train(tables, random);
  const ticket saved = ckpt.save(2);
  REQUIRE(!saved.try_wait().ok());
  CHECK(saved.error()->what.find("not at a boundary") != std::string::npos);
  CHECK(refusal(ckpt).kind == error_kind::misuse);  // load_state() throws
  reader.fails = false;
  REQUIRE(ckpt.restore()->step == 1);
  model.train(tables, random);
  ckpt.save(3).wait();
  ckpt.finish();
}

TEST_CASE("finish twice, wait twice, destruction while a save runs, tickets that outlive everything") {
  memory store;
  toy::model model;
  std::optional<ticket> outlived;
  {
    checkpointer ckpt{exact{}, store};
    ckpt.finish();
    model.attach(ckpt);
    outlived = ckpt.save(1);
    ckpt.finish();
    ckpt.finish();
    outlived = ckpt.save(2);
  }
  outlived->wait();
  outlived->wait();
  CHECK(outlived->done());
  CHECK((*toy::loaded(store).found)->step == 2);
}

TEST_CASE("the newest checkpoint is the newest by sequence, also after a rollback to an older step") {
  memory store;
  std::mt19937 random(4);
  toy::model model;
  {
    checkpointer ckpt{exact{}, store, options{.keep = {.last = 10}}};
    auto tables = model.attach(ckpt);
    for (std::uint64_t step : {10, 20, 30}) {
      model.train(tables, random);
      ckpt.save(step).wait();
    }
  }
  const auto blobs = unwrap(store.list());
  for (const blob& one : blobs)
    if (one.name.starts_with("000000000003") && one.name.ends_with(".segment"))
      REQUIRE(store.remove(one.name).ok());
  toy::model again;
  checkpointer ckpt{exact{}, store, options{.keep = {.last = 10}}};
  auto tables = again.attach(ckpt);
  const auto found = ckpt.restore();
  CHECK(found->step == 20);
  CHECK(found->passed_over.size() == 1);
  again.train(tables, random);
  ckpt.save(25).wait();
  toy::loaded newest(store);
  CHECK((*newest.found)->step == 25);
  CHECK(newest.values == again);
}

TEST_CASE("a run that never restored begins with a full save, after the newest sequence") {
  const two_saves saves;
  toy::model model;
  checkpointer ckpt{exact{}, one_shot{}, saves.store};
  model.attach(ckpt);
  const ticket saved = ckpt.save(1);
  saved.wait();
  CHECK(saved.figures().full);
  CHECK(saved.figures().sequence == 3);
}

TEST_CASE("segments that vanish under a running trainer: the save fails, the next one is full") {
  two_saves saves;
  toy::model model;
  std::mt19937 random(1);
  checkpointer ckpt{exact{}, one_shot{}, saves.store};
  auto tables = model.attach(ckpt);
  REQUIRE(ckpt.restore()->step == 2);
  ckpt.save(3).wait();
  REQUIRE(saves.store.remove(saves.blob_of("1", ".segment")).ok());
  model.train(tables, random);
  const ticket lost = ckpt.save(4);
  REQUIRE(!lost.try_wait().ok());
  CHECK(lost.error()->kind == error_kind::not_found);
  const ticket healed = ckpt.save(5);
  healed.wait();
  CHECK(healed.figures().full);
  CHECK(toy::loaded(saves.store).values == model);
}
