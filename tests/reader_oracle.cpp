// Writes checkpoints of a model of many kinds, what the library restores from them, and what was saved, for
// read_checkpoint.py and check_errors.py to be compared with:
//     reader_oracle FOLDER OUTDIR TRUEDIR full|one_shot|consecutive|intermittent
#include <checkrow/checkrow.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <list>
#include <type_traits>

#include "row_kinds.hpp"

namespace {

using all_codecs = checkrow::detail::builtin_codecs;
template <class Strategy>
using checkpointer_of = checkrow::checkpointer<checkrow::policies<all_codecs, Strategy, checkrow::directory>>;

using path = std::filesystem::path;
using file_writer = std::function<void(std::ofstream&)>;

void write_raw(std::ofstream& to, const void* from, std::size_t bytes) {
  to.write(static_cast<const char*>(from), static_cast<std::streamsize>(bytes));
}

/// A state whose size changes from save to save.
struct changing_state {
  std::vector<std::uint8_t> content;
  [[nodiscard]] std::vector<std::uint8_t> save_state() const { return content; }
  void load_state(std::span<const std::byte> bytes) {
    content.clear();
    for (const std::byte byte : bytes) content.push_back(std::to_integer<std::uint8_t>(byte));
  }
};

struct counters {
  std::uint64_t batches;
  double loss;
};

/// Interleaved: weights, a moment and a count of one row lie beside each other.
struct record {
  float weights[7];
  std::int32_t uses;
  double moment[2];
};

/// Everything that is registered, by columns that say how they are filled and dumped. Addresses are stable.
template <class Strategy>
class model {
 public:
  explicit model(const path& folder)
      : checkpointer_(
            all_codecs{}, checkrow::directory{folder.string(), checkrow::sync_discipline::none},
            checkrow::options{.error_sample = 3, .metadata = {{"purpose", "the reader's oracle"}}}) {
    static const std::uint64_t dims[] = {1, 2, 3, 7, 64, 300};
    add_quantised("exact", checkrow::exact{}, dims);
    add_quantised("uniform8", checkrow::uniform<8>{}, dims);
    add_quantised("uniform4", checkrow::uniform<4>{}, dims);
    add_quantised("uniform3", checkrow::uniform<3>{}, dims);
    add_quantised("uniform2", checkrow::uniform<2>{}, dims);
    add_quantised("symmetric8", checkrow::uniform<8, checkrow::symmetric>{}, dims);
    add_quantised("symmetric4", checkrow::uniform<4, checkrow::symmetric>{}, dims);
    add_quantised("symmetric3", checkrow::uniform<3, checkrow::symmetric>{}, dims);
    add_quantised("symmetric2", checkrow::uniform<2, checkrow::symmetric>{}, dims);
    add_quantised("greedy2", checkrow::adaptive<2, checkrow::greedy>{}, dims);
    add_quantised("greedy3", checkrow::adaptive<3, checkrow::greedy>{}, dims);
    add_quantised("greedy4", checkrow::adaptive<4, checkrow::greedy>{}, dims);
    add_quantised("refit2", checkrow::adaptive<2, checkrow::refit>{}, dims);
    add_quantised("refit3", checkrow::adaptive<3, checkrow::refit>{}, dims);
    add_quantised("refit4", checkrow::adaptive<4, checkrow::refit>{}, dims);
    add_quantised("greedy8", checkrow::adaptive<8, checkrow::greedy>{}, dims);
    add_quantised("refit8", checkrow::adaptive<8, checkrow::refit>{}, dims);
    add_small_floats<checkrow::half_bits>("half");
    add_small_floats<checkrow::bfloat16_bits>("bfloat16");
    // Enough rows for several chunks and for deltas of all index kinds.
    add_floats("large_3", 100001, 3, checkrow::uniform<4>{});
    add_floats("large_64", 20001, 64, checkrow::adaptive<2, checkrow::refit>{});
    add_floats("empty", 0, 5, checkrow::adaptive<4, checkrow::greedy>{});
    add_moments();
    add_many_types();
    add_records();
    add_small();
  }

  /// The rows of a batch, as ids that make each kind of index: far apart, dense, all in a row, in runs.
  void train(std::uint64_t batch) {
    for (table& one : tables_) {
      std::vector<std::int64_t> ids;
      const auto rows = static_cast<std::int64_t>(one.rows);
      switch (batch % 4) {
        case 0:  // gaps
          for (auto id = static_cast<std::int64_t>(batch); id < rows; id += 97 + id % 1000) ids.push_back(id);
          break;
        case 1:  // bitmap
          for (std::int64_t id = rows / 3; id < rows / 2; id += 1 + (id * 0x9e3779b9 >> 20 & 1))
            ids.push_back(id);
          break;
        case 2:  // range
          for (std::int64_t id = rows / 4; id < rows / 4 + rows / 8; ++id) ids.push_back(id);
          break;
        default:  // runs
          for (std::int64_t id = rows / 9; id < rows; id += 1 + (id % 50 == 0 ? id % 77 : 0))
            ids.push_back(id);
      }
      const auto scope = checkpointer_.batch();
      one.handle.touch(ids);
      for (const std::int64_t id : ids)
        for (const auto& fill : one.fill) fill(static_cast<std::uint64_t>(id));
    }
    fill_small(batch);
  }

  void save(std::uint64_t step) {
    checkpointer_.save(step);
    checkpointer_.finish();
  }

  void restore() {
    if (!checkpointer_.restore()) throw std::runtime_error("there is nothing to restore");
  }

  void dump(const path& folder) const {
    for (const auto& [name, write] : dumps_) {
      std::filesystem::create_directories((folder / name).parent_path());
      std::ofstream file(folder / (name + ".bin"), std::ios::binary);
      write(file);
      if (!file.flush()) throw std::runtime_error("cannot write " + name);
    }
    for (const char* name : {"changing", "none"}) {
      std::ofstream file(folder / "states" / (std::string(name) + ".bin"), std::ios::binary);
      const auto& content = name[0] == 'c' ? changing_.content : none_.content;
      write_raw(file, content.data(), content.size());
    }
  }

  /// Every row gets contents; without it a model is zero, as a fresh one is before a restore.
  void initialise() {
    for (table& one : tables_)
      for (std::uint64_t id = 0; id < one.rows; ++id)
        for (const auto& fill : one.fill) fill(id);
    fill_small(0);
  }

 private:
  using handle_type = typename checkpointer_of<Strategy>::table_type;
  struct table {
    handle_type handle;
    std::uint64_t rows;
    std::vector<std::function<void(std::uint64_t)>> fill;  ///< one row, of each column
  };

  /// Memory of `count` elements, kept as bytes.
  template <class T>
  std::span<T> memory_of(std::size_t count) {
    auto& bytes = memory_.emplace_back((count * sizeof(T) + 7) / 8 + 1);
    return {reinterpret_cast<T*>(bytes.data()), count};
  }

  void add_dump(const std::string& name, const void* from, std::size_t stride, std::size_t row_bytes,
                std::size_t rows) {
    dumps_.emplace_back(name, [=](std::ofstream& to) {
      for (std::size_t i = 0; i < rows; ++i)
        write_raw(to, static_cast<const char*>(from) + i * stride, row_bytes);
    });
  }

  /// Floats are rows of all kinds, anything else random bits.
  template <class T>
  void fill_row(T* row, std::size_t width, std::uint64_t id) {
    if constexpr (std::is_same_v<T, float>)
      row_kinds::fill_row(random_, static_cast<row_kinds::kind>(id % row_kinds::kind_count), {row, width});
    else if constexpr (sizeof(T) == 2) {
      std::vector<float> wide(width);
      fill_row(wide.data(), width, id);
      for (std::size_t i = 0; i < width; ++i)
        row[i].bits = std::is_same_v<T, checkrow::half_bits> ? checkrow::detail::narrow_half(wide[i])
                                                             : checkrow::detail::narrow_bfloat16(wide[i]);
      if (id % 11 == 0)  // the smallest of both signs: their grids have elements that would be -0
        for (std::size_t i = 0; i < width; ++i)
          row[i].bits = static_cast<std::uint16_t>(random_.next() & 0x8003);
    } else
      for (std::size_t i = 0; i < width; ++i) {
        const std::uint64_t bits = random_.next();
        std::memcpy(row + i, &bits, sizeof(T));
      }
  }
  template <class T>
  std::function<void(std::uint64_t)> filler(T* from, std::size_t stride, std::size_t width) {
    return [=, this](std::uint64_t id) {
      fill_row(reinterpret_cast<T*>(reinterpret_cast<std::byte*>(from) + stride * id), width, id);
    };
  }

  template <class T>
  checkrow::column add_column(const std::string& table, const char* name, std::uint64_t rows,
                              std::uint32_t width, std::vector<std::function<void(std::uint64_t)>>& fill,
                              checkrow::codec_choice codec = checkrow::exact{}) {
    auto values = memory_of<T>(rows * width);
    add_dump(table + "." + name, values.data(), width * sizeof(T), width * sizeof(T), rows);
    fill.push_back(filler(values.data(), width * sizeof(T), width));
    return {name, values, width, codec};
  }

  void add_floats(const std::string& name, std::uint64_t rows, std::uint64_t dim,
                  checkrow::codec_choice codec) {
    std::vector<std::function<void(std::uint64_t)>> fill;
    auto weights = memory_of<float>(rows * dim);
    add_dump(name + ".weights", weights.data(), dim * 4, dim * 4, rows);
    fill.push_back(filler(weights.data(), dim * 4, dim));
    checkrow::table_options with{.columns = {add_column<float>(name, "adagrad", rows, 1, fill)},
                                 .codec = dim == 1 ? std::nullopt : std::optional(codec)};
    tables_.push_back({checkpointer_.table(name, weights, dim, std::move(with)), rows, std::move(fill)});
  }
  void add_quantised(const std::string& name, checkrow::codec_choice codec,
                     std::span<const std::uint64_t> dims) {
    for (const std::uint64_t dim : dims) add_floats(name + "_" + std::to_string(dim), 115, dim, codec);
  }

  /// Optimizer columns with encodings of their own.
  void add_moments() {
    const std::uint64_t rows = 500, dim = 21;
    std::vector<std::function<void(std::uint64_t)>> fill;
    auto weights = memory_of<float>(rows * dim);
    add_dump("moments.weights", weights.data(), dim * 4, dim * 4, rows);
    fill.push_back(filler(weights.data(), dim * 4, dim));
    checkrow::table_options with{
        .columns = {add_column<float>("moments", "m", rows, dim, fill, checkrow::uniform<8>{}),
                    add_column<float>("moments", "v", rows, dim, fill, checkrow::two_bytes{}),
                    add_column<float>("moments", "adagrad", rows, 1, fill, checkrow::two_bytes{}),
                    add_column<checkrow::half_bits>("moments", "half", rows, 9, fill,
                                                    checkrow::uniform<4, checkrow::symmetric>{}),
                    add_column<float>("moments", "exact", rows, 2, fill)},
        .codec = checkrow::adaptive<4>{}};
    tables_.push_back({checkpointer_.table("moments", weights, dim, std::move(with)), rows, std::move(fill)});
  }

  /// Rows of half or bfloat16 by each codec.
  template <class T>
  void add_small_floats(const std::string& type) {
    checkrow::detail::builtin_codecs{}.for_each([&](const auto& codec) {
      const checkrow::codec_choice choice = codec;
      if (!codec.accepts({checkrow::element_traits<T>::type, 2, 19})) return;
      const std::string name = type + "_" + std::to_string(choice.id) + "_" + std::to_string(choice.bits);
      const std::uint64_t rows = 115, dim = 19;
      std::vector<std::function<void(std::uint64_t)>> fill;
      auto weights = memory_of<T>(rows * dim);
      add_dump(name + ".weights", weights.data(), dim * 2, dim * 2, rows);
      fill.push_back(filler(weights.data(), dim * 2, dim));
      tables_.push_back({checkpointer_.table(name, weights, dim, {.codec = choice}), rows, std::move(fill)});
    });
  }

  void add_many_types() {
    const std::uint64_t rows = 1001;
    std::vector<std::function<void(std::uint64_t)>> fill;
    auto weights = memory_of<checkrow::half_bits>(rows * 8);
    add_dump("types.weights", weights.data(), 16, 16, rows);
    fill.push_back(filler(weights.data(), 16, 8));
    checkrow::table_options with{
        .columns = {add_column<std::int64_t>("types", "seen", rows, 1, fill),
                    add_column<std::int32_t>("types", "counts", rows, 3, fill),
                    add_column<std::uint8_t>("types", "flags", rows, 5, fill),
                    add_column<double>("types", "moments", rows, 2, fill),
                    add_column<float>("types", "floats", rows, 2, fill),
                    add_column<std::uint32_t>("types", "u32", rows, 1, fill),
                    add_column<std::uint64_t>("types", "u64", rows, 1, fill),
                    add_column<checkrow::bfloat16_bits>("types", "bf16", rows, 9, fill)},
        .codec = checkrow::exact{}};
    tables_.push_back({checkpointer_.table("types", weights, 8, std::move(with)), rows, std::move(fill)});
  }

  void add_records() {
    const std::uint64_t rows = 777;
    auto records = memory_of<record>(rows);
    record* const first = records.data();
    const std::size_t stride = sizeof(record);
    std::vector<std::function<void(std::uint64_t)>> fill{
        filler(first->weights, stride, 7), filler(&first->uses, stride, 1), filler(first->moment, stride, 2)};
    add_dump("records.weights", first->weights, stride, 7 * 4, rows);
    add_dump("records.uses", &first->uses, stride, 4, rows);
    add_dump("records.moment", first->moment, stride, 16, rows);
    auto handle = checkpointer_.table(
        "records", checkrow::strided<float>{first->weights, stride, rows}, 7,
        {.columns = {{"uses", checkrow::strided<std::int32_t>{&first->uses, stride, rows}},
                     {"moment", checkrow::strided<double>{first->moment, stride, rows}, 2}},
         .codec = checkrow::uniform<8>{}});
    tables_.push_back({handle, rows, std::move(fill)});
  }

  void add_small() {
    add_dense("big", memory_of<float>(600001));
    add_dense("empty", memory_of<float>(0));
    add_dense("half", memory_of<checkrow::half_bits>(17));
    add_dense("int64", memory_of<std::int64_t>(5));
    checkpointer_.state("counters", counters_);
    checkpointer_.state("changing", changing_);
    checkpointer_.state("none", none_);
    add_dump("states/counters", &counters_, sizeof counters_, sizeof counters_, 1);
  }
  template <class T>
  void add_dense(const std::string& name, std::span<T> values) {
    checkpointer_.dense(name, values);
    add_dump("dense/" + name, values.data(), sizeof(T), sizeof(T), values.size());
    dense_.push_back(std::as_writable_bytes(values));
  }

  void fill_small(std::uint64_t batch) {
    for (const auto bytes : dense_)
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_.next());
    counters_ = {batch, 1.0 / static_cast<double>(batch + 1)};
    changing_.content.resize(1000 * (batch % 5) + 7);  // at last smaller than in the segments before
    for (auto& byte : changing_.content) byte = static_cast<std::uint8_t>(random_.next());
  }

  row_kinds::random_source random_{20240};
  std::list<std::vector<std::uint64_t>> memory_;  // words, so that any element is aligned
  std::vector<std::span<std::byte>> dense_;
  counters counters_{};
  changing_state changing_, none_;
  std::vector<std::pair<std::string, file_writer>> dumps_;
  checkpointer_of<Strategy> checkpointer_;
  std::list<table> tables_;
};

template <class Strategy>
void run(const path& folder, const path& out, const path& saved) {
  {
    model<Strategy> trained(folder);
    trained.initialise();
    trained.save(1);
    for (std::uint64_t batch = 1; batch <= 5; ++batch) {  // an even delta, then one that nothing overwrites
      trained.train(batch);
      if (batch != 3) trained.save(batch + 1);
    }
    trained.dump(saved);
  }
  model<Strategy> restored(folder);
  restored.restore();
  restored.dump(out);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string strategy = argc == 5 ? argv[4] : "";
  try {
    if (strategy == checkrow::full::name)
      run<checkrow::full>(argv[1], argv[2], argv[3]);
    else if (strategy == checkrow::one_shot::name)
      run<checkrow::one_shot>(argv[1], argv[2], argv[3]);
    else if (strategy == checkrow::consecutive::name)
      run<checkrow::consecutive>(argv[1], argv[2], argv[3]);
    else if (strategy == checkrow::intermittent::name)
      run<checkrow::intermittent>(argv[1], argv[2], argv[3]);
    else {
      std::fprintf(stderr,
                   "usage: reader_oracle FOLDER OUTDIR TRUEDIR full|one_shot|consecutive|intermittent\n");
      return 2;
    }
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
