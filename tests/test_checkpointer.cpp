// Saving and restoring as a trainer sees it.
#include <checkrow/detail/blobs.hpp>
#include <set>
#include <thread>

#include "catch_shim.hpp"
#include "toy_model.hpp"

using namespace checkrow;

namespace {

/// Trains, saves and looks after each save whether a fresh model restores exactly what was saved.
template <class Strategy>
void every_save_is_restored(Strategy strategy, options settings = {}) {
  memory store;
  std::mt19937 random(7);
  toy::model model;
  checkpointer ckpt{exact{}, strategy, store, settings};
  auto tables = model.attach(ckpt);
  for (std::uint64_t step = 1; step <= 30; ++step) {
    model.train(tables, random, step % 5 == 0 ? 0 : random() % 60);
    const ticket saved = ckpt.save(step);
    const toy::model at_boundary = model;
    if (step % 2 == 0) model.train(tables, random);  // the save must not see this
    saved.wait();
    const toy::loaded restored(store);
    REQUIRE(restored.found.ok());
    REQUIRE((*restored.found)->step == step);
    REQUIRE((*restored.found)->passed_over.empty());
    REQUIRE(restored.values == at_boundary);
  }
  ckpt.finish();
}

}  // namespace

TEST_CASE("every save of every strategy restores the model as it was at the boundary") {
  every_save_is_restored(full{});
  every_save_is_restored(one_shot{});
  every_save_is_restored(consecutive{});
  every_save_is_restored(intermittent{});
}

TEST_CASE("a bounded staging buffer encodes inside save(), with the same result") {
  memory store;
  std::mt19937 random(1);
  toy::model model;
  std::uint64_t staged = 0;
  checkpointer ckpt{
      exact{}, consecutive{}, store, stop_and_copy{.staging_bytes = 2000},
      observer{[&](const event& e) { staged += e.kind == event_kind::captured ? e.bytes : 0; }}};
  auto tables = model.attach(ckpt);
  ckpt.save(0);
  CHECK(staged == 0);  // a full save is beyond the bound
  model.train(tables, random, 5);
  ckpt.save(1);
  CHECK(staged > 0);  // a small delta is not
  CHECK(staged <= 2000);
  ckpt.finish();
  CHECK(toy::loaded(store).values == model);
}

TEST_CASE("a restored run goes on with deltas, and restores again") {
  memory store;
  toy::model reference;
  std::mt19937 random(3);
  std::uint64_t step = 0;
  for (int life = 0; life < 6; ++life) {
    toy::model model;
    std::vector<bool> fulls;
    checkpointer ckpt{exact{}, one_shot{}, store, observer{[&](const event& e) {
                        if (e.kind == event_kind::committed) fulls.push_back(e.full);
                      }}};
    auto tables = model.attach(ckpt);
    const auto found = ckpt.restore();
    REQUIRE(found.has_value() == (life > 0));
    if (found) {
      REQUIRE(found->step == step);
      REQUIRE(found->restores == std::uint64_t(life));
      REQUIRE(model == reference);
    }
    for (int batch = 0; batch < 3; ++batch) {
      model.train(tables, random);
      ckpt.save(++step);
    }
    ckpt.finish();
    CHECK(fulls == std::vector<bool>{life == 0, false, false});
    reference = model;
  }
}

TEST_CASE("a table's codec is a value of the set, and restore decodes every built-in one") {
  memory store;
  std::vector<float> a(640), b(640), c(640);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] = c[i] = float(int(i * 37 % 101) - 50) / 50;
  {
    checkpointer ckpt{codec_set<adaptive<4>, uniform<8>, exact>{}, store};
    ckpt.table("a", a, 64);
    ckpt.table("b", b, 64, {.codec = uniform<8>{}});
    ckpt.table("c", c, 64, {.codec = exact{}});
    ckpt.save(1).wait();
    const auto refused = ckpt.try_table("d", a, 64, {.codec = adaptive<2>{}});
    REQUIRE(!refused.ok());
    CHECK(refused.error().kind == error_kind::misuse);
  }
  auto before = std::tuple(a, b, c);
  checkpointer ckpt{exact{}, store};  // a set that has none of them
  ckpt.table("a", a, 64);
  ckpt.table("b", b, 64);
  ckpt.table("c", c, 64);
  REQUIRE(ckpt.restore());
  double error_a = 0, error_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error_a = std::max(error_a, std::abs(double(a[i]) - std::get<0>(before)[i]));
    error_b = std::max(error_b, std::abs(double(b[i]) - std::get<1>(before)[i]));
  }
  CHECK(c == std::get<2>(before));
  CHECK((error_b > 0 && error_b < 2.0 / 255));
  CHECK((error_a > error_b && error_a < 2.0 / 15));
}

TEST_CASE("interleaved records and padded rows are saved and restored where they lie") {
  struct record {
    float weights[5];
    float untouched;
    std::int32_t age;
    std::int32_t also_untouched;
  };
  const auto attach = [](auto& ckpt, std::vector<record>& records) {
    return ckpt.table(
        "t", strided<float>{records[0].weights, sizeof(record), records.size()}, 5,
        {.columns = {{"age", strided<std::int32_t>{&records[0].age, sizeof(record), records.size()}}}});
  };
  memory store;
  std::vector<record> records(100), again(100);
  for (std::size_t i = 0; i < records.size(); ++i)
    records[i] = {{float(i), 1, 2, 3, float(i * i)}, 5, std::int32_t(i) - 50, 6};
  {
    checkpointer ckpt{exact{}, store};
    auto table = attach(ckpt, records);
    ckpt.save(1);
    records[17].age = 1000;
    records[17].weights[4] = -1;
    table.touch(std::vector<std::uint32_t>{17});
    ckpt.save(2).wait();
  }
  checkpointer ckpt{exact{}, store};
  attach(ckpt, again);
  ckpt.restore();
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(again[i].age == records[i].age);
    CHECK(std::equal(again[i].weights, again[i].weights + 5, records[i].weights));
    CHECK((again[i].untouched == 0 && again[i].also_untouched == 0));
  }
}

TEST_CASE("evaluation restores weights without optimizer columns") {
  memory store;
  toy::model trained;
  std::mt19937 random(5);
  {
    checkpointer ckpt{exact{}, store};
    auto tables = trained.attach(ckpt);
    trained.train(tables, random);
    ckpt.save(1).wait();
  }
  toy::model model;
  model.adagrad.assign(model.adagrad.size(), 9);
  checkpointer ckpt{exact{}, store};
  ckpt.table("users", model.users, toy::model::users_dim, {.columns = {{"adagrad", model.adagrad}}});
  ckpt.table("items", model.items, toy::model::items_dim);
  const auto mismatch = ckpt.try_restore();
  REQUIRE(!mismatch.ok());
  CHECK(mismatch.error().kind == error_kind::misuse);
  REQUIRE(ckpt.restore({.columns = {"weights"}}));
  CHECK(model.users == trained.users);
  CHECK(model.items == trained.items);
  CHECK(model.adagrad == std::vector<float>(model.adagrad.size(), 9));  // registered, but not asked for
}

TEST_CASE("states save themselves, in any number of bytes, and say so when they refuse") {
  struct reader {
    std::string text;
    bool refuse = false;
    std::string save_state() const { return text; }
    bool load_state(std::span<const std::byte> bytes) {
      if (refuse) return false;
      text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return true;
    }
  };
  memory store;
  reader saved{std::string(3'000'000, 'x') + "end"}, again;
  {
    checkpointer ckpt{store};
    ckpt.state("reader", saved);
    ckpt.save(1).wait();
    saved.text.clear();
    ckpt.save(2).wait();
    saved.text = "short";
    ckpt.save(3).wait();
  }
  checkpointer ckpt{store};
  ckpt.state("reader", again);
  ckpt.restore();
  CHECK(again.text == "short");
  again.refuse = true;
  const auto refused = ckpt.try_restore();
  REQUIRE(!refused.ok());
  CHECK(refused.error().kind == error_kind::misuse);
  CHECK(refused.error().next.find("undefined") != std::string::npos);
}

TEST_CASE("observers see each step of a save, in order, with figures") {
  memory store;
  toy::model model;
  std::mt19937 random(2);
  std::vector<event> seen;
  checkpointer ckpt{exact{}, consecutive{}, store, options{.keep = {.last = 1}},
                    observer{[&](const event& e) { seen.push_back(e); }}};
  auto tables = model.attach(ckpt);
  ckpt.save(1).wait();
  model.train(tables, random, 1);
  const ticket saved = ckpt.save(2);
  saved.wait();
  std::vector<event_kind> kinds;
  for (const event& e : seen)
    if (e.sequence == 2) kinds.push_back(e.kind);
  CHECK(kinds == std::vector{event_kind::sealed, event_kind::planned, event_kind::captured,
                             event_kind::encoded, event_kind::written, event_kind::committed,
                             event_kind::collected});
  const save_figures figures = saved.figures();
  CHECK(figures.rows == 2);
  CHECK(figures.total_rows == toy::model::users_rows + toy::model::items_rows);
  CHECK(!figures.full);
  std::uint64_t stored = 0;
  for (const blob& one : *store.list())
    if (one.name.starts_with("000000000002")) stored += one.bytes;
  CHECK(figures.bytes == stored);
}

TEST_CASE("untouched rows that changed are caught where an audit is asked for") {
  memory store;
  toy::model model;
  std::mt19937 random(2);
  checkpointer ckpt{exact{}, one_shot{}, store, options{.audit_rows = 1000}};
  auto tables = model.attach(ckpt);
  ckpt.save(1).wait();
  model.train(tables, random);
  ckpt.save(2).wait();
  model.users[100 * toy::model::users_dim] += 1;  // no touch
  const ticket caught = ckpt.save(3);
  REQUIRE(!caught.try_wait().ok());
  CHECK(caught.error()->kind == error_kind::misuse);
  CHECK(caught.error()->what.find("row 100") != std::string::npos);
  CHECK(!ckpt.save(3).try_wait().ok());  // and again, until somebody touches the row
  tables.first.touch(std::vector{100});
  ckpt.save(4).wait();
  CHECK(toy::loaded(store).values == model);
}

TEST_CASE("retention keeps the newest checkpoints and what they list, and nothing else") {
  memory store;
  toy::model model;
  std::mt19937 random(2);
  store.put("notes.txt", memory::bytes(3));
  checkpointer ckpt{exact{}, intermittent{}, store, options{.keep = {.last = 3}}};
  auto tables = model.attach(ckpt);
  for (std::uint64_t step = 1; step <= 40; ++step) {
    model.train(tables, random);
    ckpt.save(step).wait();
    std::set<std::string> names, needed{"notes.txt"};
    for (const blob& one : *store.list()) names.insert(one.name);
    std::size_t manifests = 0;
    detail::erased_sink<memory> erased(store);
    for (const std::string& name : names) {
      if (!name.ends_with(".manifest")) continue;
      ++manifests;
      needed.insert(name);
      const auto manifest = detail::load_manifest(erased, name);
      REQUIRE(manifest.ok());
      for (const auto& segment : manifest->segments) needed.insert(segment.name);
    }
    REQUIRE(manifests == std::min<std::uint64_t>(step, 3));
    REQUIRE(names == needed);
  }
}
