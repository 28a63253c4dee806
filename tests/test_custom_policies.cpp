// A user's codec, tracker, strategy and sink in place of ours, and codecs chosen per table and per plan.
#include <checkrow/checkrow.hpp>

#include "codec_contract.hpp"
#include "own_policies.hpp"
#include "sink_contract.hpp"
#include "temporary_folder.hpp"

using namespace checkrow;

namespace {

/// The same id and bits on disk, and yet another codec.
struct int8_rows_2 : own::int8_rows {
  static constexpr std::uint32_t version = 2;
};
struct int8_rows_renamed : own::int8_rows {
  static constexpr std::string_view name = "some other rows";
};

/// Two tables and what was trained: values that int8_rows keeps exactly (small multiples of a power of two).
struct model {
  static constexpr std::size_t rows = 200, dim = 8;
  std::vector<float> users = std::vector<float>(rows * dim, -1.0f), items = users;
  std::vector<float> adagrad = std::vector<float>(rows);

  template <class Checkpointer>
  auto attach(Checkpointer& ckpt, table_options of_users = {}, table_options of_items = {}) {
    of_users.columns.push_back({"adagrad", adagrad});
    auto handle = ckpt.table("users", users, dim, std::move(of_users));
    ckpt.table("items", items, dim, std::move(of_items));
    return handle;
  }

  template <class Handle>
  void train(Handle& table, std::size_t first, std::size_t count, float value) {
    table.touch_range(first, count);
    for (std::size_t i = first * dim; i < (first + count) * dim; ++i)
      users[i] = float((i + 7 * std::size_t(value)) % 100) / 64;
    for (std::size_t row = first; row < first + count; ++row) adagrad[row] += value * 1.37f;
  }

  bool operator==(const model& o) const {
    return users == o.users && items == o.items && adagrad == o.adagrad;
  }
};

/// What a manifest in the sink says, as text.
std::string newest_manifest(const memory& store) {
  std::string newest;
  for (const blob& one : *store.list())
    if (one.name.ends_with(".manifest")) newest = std::max(newest, one.name);
  const auto bytes = store.find(newest);
  return bytes == nullptr ? "" : std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

/// A checkpoint of one save by `Codecs` in a sink of memory.
template <class Codecs>
memory saved_by(model& trained) {
  memory store;
  checkpointer ckpt{Codecs{}, store};
  auto users = trained.attach(ckpt);
  trained.train(users, 0, model::rows, 1);
  ckpt.save(1).wait();
  return store;
}

void unsupported(const memory& store, auto codecs, const std::vector<std::string>& named) {
  for (const bool verify_first : {false, true}) {
    const model before;
    model reading;
    std::vector<error> told;
    checkpointer ckpt{codecs, store, observer{[&](const event& what) {
                        if (what.why != nullptr) told.push_back(*what.why);
                      }}};
    reading.attach(ckpt);
    const auto found = ckpt.try_restore({.verify_first = verify_first});
    REQUIRE_FALSE(found.ok());
    CAPTURE(found.error().text());
    CHECK(found.error().kind == error_kind::unsupported);
    for (const std::string& part : named) CHECK(found.error().text().find(part) != std::string::npos);
    CHECK_FALSE(found.error().next.empty());
    CHECK(reading == before);  // not a row was written
    CHECK(told.size() == 1);
    CHECK_THROWS_AS(ckpt.restore(), unsupported_error);
  }
}

/// Names a codec for each table: items in 4 bits, users in int8 rows at odd steps.
struct codecs_by_step {
  static constexpr std::string_view name = "codecs by step";
  static constexpr cursor_set cursors = 0;
  std::size_t surplus = 0;  ///< codecs more than there are tables
  codec_choice of_items = adaptive<4>{};

  [[nodiscard]] save_plan plan(const history&, const boundary& now) const {
    save_plan plan;
    plan.codecs = {of_items, now.step % 2 ? codec_choice(own::int8_rows{}) : codec_choice(exact{})};
    plan.codecs.resize(plan.codecs.size() + surplus);
    return plan;
  }
};

using several = codec_set<exact, own::int8_rows, adaptive<4>>;

}  // namespace

TEST_CASE("a user's codec is held to the contract of ours, within what it promises", "[custom]") {
  const own::int8_rows codec;
  SECTION("idempotent and deterministic") { codec_contract::check_idempotence(codec); }
  SECTION("no rows") { codec_contract::check_no_rows(codec); }
  SECTION("hostile bytes are safe") { codec_contract::check_hostile_bytes(codec); }
  SECTION("any view gives the same bytes") { codec_contract::check_views(codec); }
}

TEST_CASE("policies of one's own in every place, in any order", "[custom]") {
  const temporary_folder folder;
  model trained;
  {
    checkpointer ckpt{own::log_file(folder.path("log")), own::dirty_only{}, own::set_tracker{},
                      own::int8_rows{}};
    static_assert(std::same_as<decltype(ckpt)::strategy_type, own::dirty_only>);
    static_assert(std::same_as<decltype(ckpt)::tracker, own::set_tracker>);
    static_assert(std::same_as<decltype(ckpt)::sink_type, own::log_file>);
    static_assert(std::same_as<decltype(ckpt)::codecs, codec_set<own::int8_rows>>);
    auto users = trained.attach(ckpt);
    for (std::uint64_t step = 1; step <= 5; ++step) {
      trained.train(users, step * 20, 15, float(step));
      CHECK(users.dirty_rows() == 15);
      const ticket saved = ckpt.save(step);
      saved.wait();
      CHECK_FALSE(saved.figures().full);  // never a base
      CHECK(saved.figures().rows == 15);
    }
    CHECK_THROWS_AS(users.touch(std::array{-1}), misuse_error);
    const ticket quiet = ckpt.save(6);  // nothing dirty
    quiet.wait();
    CHECK(quiet.figures().rows == 0);
  }
  // A new process: the log is read again, and the run goes on.
  model resumed;  // rows that were never dirty keep what they start with
  checkpointer ckpt{own::int8_rows{}, own::set_tracker{}, own::dirty_only{},
                    own::log_file(folder.path("log"))};
  auto users = resumed.attach(ckpt);
  auto found = ckpt.restore();
  REQUIRE(found.has_value());
  CHECK(found->step == 6);
  CHECK(found->strategy == "dirty only");
  CHECK(resumed.adagrad == trained.adagrad);
  CHECK(resumed == trained);
  resumed.train(users, 0, 3, 9);
  const ticket saved = ckpt.save(7);
  saved.wait();
  CHECK(saved.figures().rows == 3);

  model last;
  checkpointer reader{own::int8_rows{}, own::dirty_only{}, own::log_file(folder.path("log"))};
  last.attach(reader);
  CHECK(reader.restore()->step == 7);
  CHECK(last == resumed);
}

TEST_CASE("a codec that the program does not have is named before a row is written", "[custom]") {
  model trained;
  const memory store = saved_by<own::int8_rows>(trained);
  CHECK(newest_manifest(store).find("int8 rows") != std::string::npos);
  unsupported(store, exact{}, {"32769", "int8 rows", "version 1", "codec_set"});
  unsupported(store, check_n_run_codecs{}, {"32769", "int8 rows"});

  model reading;
  checkpointer ckpt{several{}, store};  // anywhere in the set
  reading.attach(ckpt);
  CHECK(ckpt.restore().has_value());
  CHECK(reading == trained);
}

TEST_CASE("another codec under the same id is not taken for it", "[custom]") {
  model trained;
  const memory store = saved_by<own::int8_rows>(trained);
  unsupported(store, int8_rows_2{}, {"32769", "int8 rows, version 1", "int8 rows, version 2"});
  unsupported(store, int8_rows_renamed{}, {"int8 rows, version 1", "some other rows"});
}

TEST_CASE("a codec that is not there says so of an older segment, too", "[custom]") {
  model trained;
  memory store;
  checkpointer ckpt{codec_set<own::int8_rows, exact>{}, store, one_shot{}};
  auto users = trained.attach(ckpt, {.codec = own::int8_rows{}}, {.codec = exact{}});
  ckpt.save(1).wait();
  trained.train(users, 0, 10, 1);
  ckpt.save(2).wait();
  unsupported(store, exact{}, {"int8 rows"});
}

TEST_CASE("each table chooses a codec of the set", "[custom]") {
  model trained;
  memory store;
  {
    checkpointer ckpt{several{}, store};
    auto users = trained.attach(ckpt, {.codec = own::int8_rows{}}, {.codec = exact{}});
    for (float& one : trained.items) one = 0.1f;  // in no few bits
    trained.train(users, 0, model::rows, 1);
    ckpt.save(1).wait();
    const auto other = ckpt.try_table("more", trained.items, model::dim, {.codec = uniform<8>{}});
    REQUIRE_FALSE(other.ok());  // it is not in the set
    CHECK(other.error().kind == error_kind::misuse);
    CHECK(other.error().where.find("more") != std::string::npos);
    std::vector<std::int32_t> counts(100);
    CHECK(ckpt.try_table("counts", counts, 10, {.codec = own::int8_rows{}}).error().kind ==
          error_kind::misuse);  // of floats only
    CHECK(ckpt.try_table("counts", counts, 10).ok());
  }
  model reading;
  checkpointer reader{several{}, store};  // with other choices: each chunk names its own
  reading.attach(reader, {.codec = adaptive<4>{}});
  REQUIRE(reader.restore().has_value());
  CHECK(reading == trained);
}

TEST_CASE("a plan names a codec for each table", "[custom]") {
  model trained;
  memory store;
  checkpointer ckpt{codecs_by_step{}, several{}, store};
  auto users = trained.attach(ckpt);
  trained.train(users, 0, model::rows, 1);
  for (float& one : trained.users) one += 0.001f;  // more than int8 rows can keep
  for (const std::uint64_t step : {1, 2}) {
    ckpt.save(step).wait();
    model reading;
    checkpointer reader{several{}, store};
    reading.attach(reader);
    REQUIRE(reader.restore()->step == step);
    CHECK((reading.users == trained.users) == (step == 2));
    CHECK(reading.items == trained.items);  // constant rows, whatever the bits
    CHECK(reading.adagrad == trained.adagrad);
  }

  for (const codecs_by_step& wrong :
       {codecs_by_step{.surplus = 1}, codecs_by_step{.of_items = uniform<8>{}}}) {
    model other;
    checkpointer faulty{wrong, several{}, memory{}};
    other.attach(faulty);
    const ticket saved = faulty.save(1);
    REQUIRE(saved.error().has_value());
    CHECK(saved.error()->kind == error_kind::misuse);
    CHECK_FALSE(faulty.try_finish().ok());
  }
}

namespace {

/// Plans that no strategy should make.
struct wrong_plans {
  static constexpr std::string_view name = "wrong plans";
  static constexpr cursor_set cursors = checkrow::cursors(cursor::base);
  save_plan answer;
  [[nodiscard]] save_plan plan(const history& past, const boundary&) const {
    return past.empty() ? save_plan{} : answer;
  }
};

}  // namespace

TEST_CASE("a plan that makes no sense is refused, and nothing is lost", "[custom]") {
  save_plan undeclared{.rows = row_selection::dirty, .since = cursor::last_save};
  save_plan beyond{.rows = row_selection::dirty, .since = cursor::base, .keep = {0, 1}};
  save_plan twice{.rows = row_selection::dirty, .since = cursor::base, .keep = {0, 0}};
  for (const save_plan& answer : {undeclared, beyond, twice}) {
    model trained;
    memory store;
    checkpointer ckpt{wrong_plans{answer}, exact{}, store};
    auto users = trained.attach(ckpt);
    ckpt.save(1).wait();
    const auto before = sink_contract::listed(store);
    trained.train(users, 5, 2, 1);
    const ticket saved = ckpt.save(2);
    REQUIRE(saved.error().has_value());
    CHECK(saved.error()->kind == error_kind::misuse);
    CHECK(saved.error()->where.find("wrong plans") != std::string::npos);
    CHECK(users.dirty_rows() == 2);
    CHECK(sink_contract::listed(store) == before);
  }
}

namespace {

/// Says of more than one row that it may need any number of bytes.
struct shy_rows : own::int8_rows {
  static constexpr std::uint16_t id = 0x8003;
  [[nodiscard]] std::size_t bound(const column_shape& shape, std::size_t n) const noexcept {
    return n > 1 ? std::numeric_limits<std::size_t>::max() - 10 : own::int8_rows::bound(shape, n);
  }
};

/// Claims to have written more than it may.
struct boastful_rows : own::int8_rows {
  static constexpr std::uint16_t id = 0x8004;
  [[nodiscard]] std::size_t encode(const column_shape& shape, row_view rows, std::size_t n,
                                   std::byte* out) const noexcept {
    return own::int8_rows::encode(shape, rows, n, out) + 1;
  }
};

}  // namespace

TEST_CASE("a codec whose bound is beyond all memory is given one row at a time", "[custom]") {
  model trained, reading;
  const memory store = saved_by<shy_rows>(trained);
  checkpointer reader{shy_rows{}, store};
  reading.attach(reader);
  REQUIRE(reader.restore());
  CHECK(reading == trained);
}

TEST_CASE("a codec that passes its own bound fails the save by name", "[custom]") {
  model trained;
  memory store;
  checkpointer ckpt{boastful_rows{}, store};
  auto users = trained.attach(ckpt);
  users.touch_all();
  const ticket saved = ckpt.save(1);
  REQUIRE(!saved.try_wait().ok());
  CHECK(saved.error()->kind == error_kind::misuse);
  CHECK(saved.error()->text().find("bound()") != std::string::npos);
  CHECK(saved.error()->text().find("weights") != std::string::npos);
  CHECK(sink_contract::listed(store).empty());
}
