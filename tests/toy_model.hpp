// A small model with every kind of thing in it, for tests of saving and restoring.
#pragma once

#include <checkrow/checkrow.hpp>
#include <random>

namespace toy {

/// A sink of the tests' own: memory, but the n-th call from now fails as a full disk does.
struct faulty {
  checkrow::memory inner;
  std::shared_ptr<long> calls_left = std::make_shared<long>(-1);  ///< -1: never fails

  struct writer {
    checkrow::memory::writer inner;
    std::shared_ptr<long> calls_left;
    checkrow::status append(std::span<const std::byte> bytes) {
      return fails(*calls_left) ? full() : inner.append(bytes);
    }
    checkrow::status commit() { return fails(*calls_left) ? full() : inner.commit(); }
    void abandon() noexcept { inner.abandon(); }
  };
  using reader = checkrow::memory::reader;

  static bool fails(long& left) { return left > 0 && --left == 0; }
  static checkrow::status full() {
    return checkrow::error{checkrow::error_kind::io, "cannot write: No space left on device", "faulty",
                           "free some space", 28};
  }

  checkrow::result<writer> create(std::string_view name) {
    if (fails(*calls_left)) return full().error();
    auto made = inner.create(name);
    return writer{*std::move(made), calls_left};
  }
  checkrow::result<reader> open(std::string_view name) const { return inner.open(name); }
  checkrow::result<std::vector<checkrow::blob>> list() const {
    if (fails(*calls_left)) return full().error();
    return inner.list();
  }
  checkrow::status remove(std::string_view name) { return inner.remove(name); }
  std::string where() const { return "faulty"; }
};
static_assert(checkrow::sink<faulty>);

/// Users: weights of dim 6, row-wise Adagrad and a step count a row. Items: dim 3, Adam. One dense parameter,
/// one state. Updated at random, always through touch.
struct model {
  static constexpr std::size_t users_rows = 300, users_dim = 6, items_rows = 77, items_dim = 3;
  std::vector<float> users = std::vector<float>(users_rows * users_dim),
                     adagrad = std::vector<float>(users_rows);
  std::vector<std::int64_t> counts = std::vector<std::int64_t>(users_rows);
  std::vector<float> items = std::vector<float>(items_rows * items_dim), m = items, v = items;
  std::vector<double> mlp = std::vector<double>(41);
  struct {
    std::uint64_t position = 0;
    std::uint32_t random[4] = {1, 2, 3, 4};
    std::uint32_t padding[2] = {};
  } reader;

  bool operator==(const model& o) const {
    return users == o.users && adagrad == o.adagrad && counts == o.counts && items == o.items && m == o.m &&
           v == o.v && mlp == o.mlp && reader.position == o.reader.position;
  }

  /// Registers everything; returns the handles of users and items.
  template <class Checkpointer>
  auto attach(Checkpointer& ckpt) {
    auto user_table =
        ckpt.table("users", users, users_dim, {.columns = {{"counts", counts}, {"adagrad", adagrad}}});
    auto item_table =
        ckpt.table("items", items, items_dim, {.columns = {{"m", m, items_dim}, {"v", v, items_dim}}});
    ckpt.dense("mlp", mlp);
    ckpt.state("reader", reader);
    return std::pair(user_table, item_table);
  }

  /// One batch of n rows of each table.
  template <class Handles>
  void train(Handles& tables, std::mt19937& random, std::size_t n = 20) {
    std::vector<std::int32_t> some_users, some_items;
    for (std::size_t i = 0; i < n; ++i) {
      some_users.push_back(std::int32_t(random() % users_rows));
      some_items.push_back(std::int32_t(random() % items_rows));
    }
    tables.first.touch(some_users);
    tables.second.touch(some_items);
    const auto value = [&] { return float(random() % 2001) / 1000 - 1; };
    for (const auto id : some_users) {
      for (std::size_t d = 0; d < users_dim; ++d) users[std::size_t(id) * users_dim + d] += value();
      adagrad[std::size_t(id)] += 1;
      counts[std::size_t(id)] = std::int64_t(reader.position) << 33;
    }
    for (const auto id : some_items)
      for (std::size_t d = 0; d < items_dim; ++d) {
        const std::size_t at = std::size_t(id) * items_dim + d;
        items[at] += value(), m[at] += value(), v[at] += 1;
      }
    mlp[random() % mlp.size()] += value();
    ++reader.position;
  }
};

/// What a fresh model restores from the sink, and what restore() said.
template <class Sink>
struct loaded {
  model values;
  checkrow::result<std::optional<checkrow::restored>> found{std::nullopt};

  explicit loaded(Sink sink, checkrow::restore_options options = {}) {
    checkrow::checkpointer ckpt{checkrow::exact{}, std::move(sink)};
    values.attach(ckpt);
    found = ckpt.try_restore(options);
  }
};

}  // namespace toy
