// Four policies of one's own, one of each kind, as small as they can be. They plug in the same way as the
// library's, and one that misses something is refused by name when it is compiled (see concepts.hpp).
//     g++ -std=c++20 -Iinclude examples/custom_policy.cpp -pthread && ./a.out
#include <checkrow/checkrow.hpp>
#include <cmath>
#include <cstdio>
#include <map>

using namespace checkrow;

/// A codec: 16 bits an element, in steps of 1/4096 from -8 to 8. Deterministic, and encoding a decoded row
/// gives the same bytes again. The id is on disk: from 0x8000, and never used again for something else.
struct fixed_point {
  static constexpr std::uint16_t id = 0x8001;
  static constexpr std::uint8_t bits = 16;
  static constexpr std::string_view name = "fixed point";
  static constexpr std::uint32_t version = 1;
  bool accepts(const column_shape& shape) const noexcept { return shape.element == element_type::float32; }
  std::size_t bound(const column_shape& shape, std::size_t n) const noexcept { return n * shape.width * 2; }
  std::size_t encode(const column_shape& shape, row_view rows, std::size_t n, std::byte* out) const noexcept {
    for (std::size_t i = 0; i < n * shape.width; ++i) {
      float value;
      std::memcpy(&value, rows.row(i / shape.width) + i % shape.width * 4, 4);
      const auto code = std::int16_t(std::isnan(value) ? 0 : std::clamp(value * 4096, -32768.f, 32767.f));
      std::memcpy(out + 2 * i, &code, 2);
    }
    return bound(shape, n);
  }
  bool decode(const column_shape& shape, std::span<const std::byte> bytes, std::size_t n,
              row_span rows) const noexcept {
    if (bytes.size() != bound(shape, n)) return false;  // these bytes come from a file: trust nothing
    for (std::size_t i = 0; i < n * shape.width; ++i) {
      std::int16_t code;
      std::memcpy(&code, bytes.data() + 2 * i, 2);
      const float value = float(code) / 4096;
      std::memcpy(rows.row(i / shape.width) + i % shape.width * 4, &value, 4);
    }
    return true;
  }
};
static_assert(row_codec<fixed_point>);

/// A tracker: the library's, which also counts how often each row was touched. (Here by inheritance; one
/// from scratch implements what concepts.hpp lists.)
struct access_counter {
  struct table_rows : bitmap::table_rows {
    table_rows(const access_counter&, std::uint64_t rows, cursor_set kept)
        : bitmap::table_rows(bitmap{}, rows, kept), counts(rows) {}
    template <class Id>
    std::size_t touch(std::span<const Id> ids) noexcept {
      const std::size_t marked = bitmap::table_rows::touch(ids);  // fewer where an id is out of range
      for (const Id id : ids.first(marked)) total += counts[std::size_t(id)]++ == 0 ? 1 : 0;
      return marked;
    }
    std::vector<std::atomic<std::uint32_t>> counts;      // of each row
    static inline std::atomic<std::uint64_t> total = 0;  // rows ever touched, in all tables
  };
};
static_assert(row_tracker<access_counter>);

/// A strategy: everything at first and at every fourth save, in between what changed since the last one.
struct every_fourth {
  static constexpr std::string_view name = "every fourth";
  static constexpr cursor_set cursors = checkrow::cursors(cursor::last_save);
  save_plan plan(const history& past, const boundary&) const {
    if (past.empty() || past.deltas == 3) return {};  // a full save: the defaults of a plan
    save_plan delta{.rows = row_selection::dirty, .since = cursor::last_save};
    for (std::uint32_t i = 0; i < past.segments.size(); ++i) delta.keep.push_back(i);
    return delta;
  }
};
static_assert(strategy<every_fourth>);

/// A sink: blobs in a map, each put there by its commit and not before.
struct map_sink {
  using content = std::vector<std::byte>;
  using blobs = std::map<std::string, content, std::less<>>;
  struct writer {
    std::shared_ptr<blobs> to;
    std::string name;
    content written{};
    status append(std::span<const std::byte> more) {
      written.insert(written.end(), more.begin(), more.end());
      return {};
    }
    status commit() {
      to->insert_or_assign(name, std::move(written));
      return {};
    }
    void abandon() noexcept { written.clear(); }
  };
  struct reader {
    content stored;
    std::uint64_t bytes() const noexcept { return stored.size(); }
    status read(std::uint64_t offset, std::span<std::byte> out) const {
      if (offset > stored.size() || out.size() > stored.size() - offset)
        return error{error_kind::corrupt, "the blob is too short", "map", ""};
      std::copy_n(stored.begin() + std::ptrdiff_t(offset), out.size(), out.begin());
      return {};
    }
  };

  result<writer> create(std::string_view name) { return writer{held, std::string(name)}; }
  result<reader> open(std::string_view name) {
    const auto found = held->find(name);
    if (found != held->end()) return reader{found->second};
    return error{error_kind::not_found, "no such blob", std::string(name), ""};
  }
  result<std::vector<blob>> list() {
    std::vector<blob> out;
    for (const auto& [name, stored] : *held) out.push_back({name, stored.size()});
    return out;
  }
  status remove(std::string_view name) {
    if (held->erase(std::string(name)) != 0) return {};
    return error{error_kind::not_found, "no such blob", std::string(name), ""};
  }
  std::string where() const { return "map"; }
  std::shared_ptr<blobs> held = std::make_shared<blobs>();  // shared by copies of this sink
};
static_assert(sink<map_sink>);

int main() {
  constexpr std::size_t rows = 1000, dim = 8;
  std::vector<float> weights(rows * dim), again(rows * dim);
  map_sink store;
  checkpointer ckpt{fixed_point{}, access_counter{}, every_fourth{}, store};  // in any order
  auto users = ckpt.table("users", weights, dim);
  std::string kinds;
  for (std::uint64_t step = 1; step <= 6; ++step) {
    for (std::size_t row = step; row < rows; row += 50 * step) {
      users.touch(std::array{row});
      for (std::size_t d = 0; d < dim; ++d) weights[row * dim + d] += float(d) / 16;
    }
    const ticket saved = ckpt.save(step);
    saved.wait();
    const char* kind = saved.figures().full ? "full" : "delta";
    std::printf("step %d: %s, %d rows\n", int(step), kind, int(saved.figures().rows));
    kinds += kind[0];
  }
  checkpointer reader{store, every_fourth{}, fixed_point{}};  // any tracker will do
  reader.table("users", again, dim);
  const auto found = reader.restore();
  const bool right = found && found->step == 6 && again == weights && kinds == "fdddfd" &&
                     access_counter::table_rows::total > 0;
  std::printf("%d rows were ever touched; restored: %s\n", int(access_counter::table_rows::total),
              right ? "the same model" : "NOT the same model");
  return right ? 0 : 1;
}
