// What a save costs, and how fast it is durable: against the disk's own rate, encoding alone, and training
// without a save, all of one run.
//
// Tables of float32 weights, dim 64, and row-wise Adagrad, `--gib` GiB of them (stalls: 1, 4 and 12). The
// trainer looks rows up in bags of 32, runs a small MLP and updates the rows, so that embedding is about a
// quarter of its step; its ids are Zipf (1.05) or uniform.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <checkrow/checkrow.hpp>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <random>

#include "tables.hpp"

namespace {

using namespace checkrow;
using namespace bench;

struct settings {
  double gib = 4;
  std::vector<double> stall_gib = {1, 4, 12};
  int repeats = 3;
  bool quick = false;
  std::string folder, json;
  std::FILE* out = nullptr;
};

// ---------------------------------------------------------------------------------------------------- sinks

/// Takes everything and keeps nothing: what encoding alone allows.
struct discard {
  std::shared_ptr<std::vector<blob>> blobs = std::make_shared<std::vector<blob>>();

  struct writer {
    std::shared_ptr<std::vector<blob>> blobs;
    blob mine;
    status append(std::span<const std::byte> bytes) {
      mine.bytes += bytes.size();
      return {};
    }
    status commit() {
      blobs->push_back(mine);
      return {};
    }
    void abandon() noexcept {}
  };
  struct reader {
    [[nodiscard]] std::uint64_t bytes() const noexcept { return 0; }
    status read(std::uint64_t, std::span<std::byte>) {
      return error{error_kind::io, "nothing is kept", "nowhere", ""};
    }
  };
  result<writer> create(std::string_view name) { return writer{blobs, {std::string(name), 0}}; }
  result<reader> open(std::string_view) { return reader{}; }
  result<std::vector<blob>> list() { return *blobs; }
  status remove(std::string_view name) {
    std::erase_if(*blobs, [&](const blob& one) { return one.name == name; });
    return {};
  }
  std::string where() const { return "nowhere"; }
};

/// Every row changed since the last save, without a base ever.
struct always_delta {
  static constexpr std::string_view name = "always_delta";
  static constexpr cursor_set cursors = checkrow::cursors(cursor::last_save);
  save_plan plan(const history& past, const boundary&) const {
    save_plan out{.rows = row_selection::dirty, .since = cursor::last_save};
    for (std::uint32_t i = 0; i < past.segments.size(); ++i) out.keep.push_back(i);
    return out;
  }
};

// -------------------------------------------------------------------------------------------------- trainer

/// The sum of bags of rows, an MLP, and row-wise Adagrad on the rows. Not a model of anything: memory traffic
/// and arithmetic in a DLRM's proportions.
class trainer {
 public:
  static constexpr std::size_t batch = 8192, bag = 32, width = 256;

  trainer(model& tables, double zipf, std::uint64_t seed) : tables_(tables), ids_(batch * 64) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    const double rows = double(tables.rows());
    for (auto& id : ids_) {
      const double u = uniform(random);
      const double rank =
          zipf == 0 ? u * rows : std::pow((std::pow(rows, 1 - zipf) - 1) * u + 1, 1 / (1 - zipf)) - 1;
      const auto k = std::min(std::uint64_t(std::max(rank, 0.0)), tables.rows() - 1);
      id = std::uint32_t((k * 0x9e3779b97f4a7c15u >> 20) % tables.rows());
    }
    for (float& w : mlp_) w = 0.01f;
  }

  [[nodiscard]] std::span<const std::uint32_t> next() {
    position_ = (position_ + batch) % ids_.size();
    return {ids_.data() + position_, batch};
  }
  void look_up(std::span<const std::uint32_t> ids) {
    for (std::size_t i = 0; i < ids.size(); i += bag) {
      float sum[dim] = {};
      for (std::size_t j = i; j < i + bag; ++j) {
        const float* const row = tables_.weights.data() + std::size_t(ids[j]) * dim;
        for (std::size_t d = 0; d < dim; ++d) sum[d] += row[d];
      }
      for (std::size_t d = 0; d < dim; ++d) pooled_[d] += sum[d];
    }
  }
  void run_mlp(int times) {
    for (int t = 0; t < times; ++t) {
      float out[width] = {};
      for (std::size_t i = 0; i < width; ++i)
        for (std::size_t j = 0; j < width; ++j) out[j] += hidden_[i] * mlp_[i * width + j];
      for (std::size_t j = 0; j < width; ++j) hidden_[j] = out[j] * 1e-3f + 1e-6f;
    }
  }
  void update(std::span<const std::uint32_t> ids) {
    for (const std::uint32_t id : ids) {
      float* const row = tables_.weights.data() + std::size_t(id) * dim;
      float& sum = tables_.adagrad.data()[id];
      sum += 1e-6f;
      const float rate = 1e-7f / std::sqrt(sum);
      for (std::size_t d = 0; d < dim; ++d) row[d] -= rate * pooled_[d];
    }
    for (float& p : pooled_) p *= 0.5f;
  }

 private:
  model& tables_;
  std::vector<std::uint32_t> ids_;
  std::size_t position_ = 0;
  float pooled_[dim] = {};
  float mlp_[width * width] = {};
  float hidden_[width] = {1};
};

/// How often the MLP runs so that embedding is about a quarter of a step.
int mlp_turns(trainer& one) {
  one.look_up(one.next());
  const auto start = clock_type::now();
  for (int i = 0; i < 20; ++i) {
    const auto ids = one.next();
    one.look_up(ids);
    one.update(ids);
  }
  const double embedding = seconds_since(start);
  const auto middle = clock_type::now();
  one.run_mlp(20);
  return std::max(1, int(3 * embedding / seconds_since(middle)));
}

double cpu_seconds() {
  ::timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, std::size_t(q * double(values.size())))];
}

// -------------------------------------------------------------------------------------------------- results

struct row {
  const char* name = "";
  double gib = 0;
  const char* codec = "";
  int bits = 0;
  double share = 1, stall_ms = -1, rate = -1, disk = -1, extra_mib = -1, slowdown = -1;
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return value >= 0 ? text : "null";
}

void line(const settings& chosen, const row& r, const std::string& more = {}) {
  if (chosen.out == nullptr) return;
  std::fprintf(
      chosen.out,
      "{\"case\": \"%s\", \"gib\": %g, \"codec\": \"%s\", \"bits\": %d, \"dirty_share\": %g, "
      "\"stall_ms\": %s, \"gb_per_s\": %s, \"disk_gb_per_s\": %s, \"extra_mib\": %s, \"slowdown\": %s%s}\n",
      r.name, r.gib, r.codec, r.bits, r.share, number(r.stall_ms).c_str(), number(r.rate).c_str(),
      number(r.disk).c_str(), number(r.extra_mib).c_str(), number(r.slowdown).c_str(), more.c_str());
  std::fflush(chosen.out);
}

/// A table of so many GiB of weights, on huge pages as the guide recommends.
struct huge_model : model {
  explicit huge_model(double gib) : model(std::size_t(gib * double(1u << 30)) / (dim * 4)) {
    advise_huge_pages(weights.data(), weights.bytes());
    advise_huge_pages(adagrad.data(), adagrad.bytes());
    fill(*this, 1);
  }
};

// --------------------------------------------------------------------------------------------------- stalls

/// Saves again and again while every core trains; each is cancelled by the next, so that only its beginning
/// is measured.
template <class Strategy>
void stalls(const settings& chosen, double gib, model& tables, Strategy strategy, double share) {
  std::vector<double> stall_ms;
  double waited = 0;
  checkpointer ckpt{uniform<8>{}, strategy, discard{}, options{.overlap = overlap_rule::cancel},
                    observer{[&](const event& e) {
                      if (e.kind == event_kind::sealed) waited = e.seconds;
                    }}};
  auto table = tables.attach(ckpt);
  if (share < 1)
    for (std::uint64_t id = 0; id + 16 <= tables.rows(); id += std::uint64_t(16 / share))
      table.touch_range(id, 16);
  trainer mine(tables, 1.05, 1);
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (unsigned t = 1; t < std::max(2u, std::thread::hardware_concurrency()); ++t)
    others.emplace_back([&, t] {
      trainer reads(tables, 1.05, 10 + t);
      while (!stop) reads.run_mlp(50);
    });
  for (int i = 0; i < (chosen.quick ? 10 : 60); ++i) {
    for (const auto start = clock_type::now(); seconds_since(start) < .03;) {
      const auto ids = mine.next();
      table.touch(ids);
      mine.look_up(ids);
      mine.update(ids);
    }
    const auto start = clock_type::now();
    (void)ckpt.save(std::uint64_t(i));
    stall_ms.push_back(1e3 * (seconds_since(start) - waited));
  }
  stop = true;
  for (std::thread& one : others) one.join();
  const double median = quantile(stall_ms, .5), late = quantile(stall_ms, .95), most = quantile(stall_ms, 1);
  std::printf("  %4.3g GiB, %-9s median %7.1f us, 95 %% %7.1f us, most %7.1f us\n", gib,
              share < 1 ? "25 % delta:" : "full:", 1e3 * median, 1e3 * late, 1e3 * most);
  line(chosen,
       {.name = "stall", .gib = gib, .codec = "uniform", .bits = 8, .share = share, .stall_ms = median},
       ", \"stall_ms_95\": " + number(late) + ", \"stall_ms_most\": " + number(most));
}

// ------------------------------------------------------------------------------------------------- slowdown

struct steps {
  std::vector<double> wall;
  double cpu = 0, touch = 0, all = 0;
};

/// Copies the tables' rows to 8 MiB of memory, again and again, each time within so many seconds: the memory
/// traffic of a save, and nothing else of it.
void copy_until(const std::atomic<bool>& stop, const model& tables, double seconds) {
  constexpr std::size_t piece = std::size_t{8} << 20;
  std::vector<std::byte> to(piece);
  const auto* const from = reinterpret_cast<const std::byte*>(tables.weights.data());
  const double each = seconds * double(piece) / double(tables.weights.bytes());
  for (std::size_t at = 0; !stop; at = (at + piece) % (tables.weights.bytes() / piece * piece)) {
    const auto start = clock_type::now();
    std::memcpy(to.data(), from + at, piece);
    while (seconds_since(start) < each) continue;
  }
}

/// A trainer's steps without a save, during one, and beside a thread that only copies as fast, in turns.
template <class Strategy>
void slowdown(const settings& chosen, model& tables, Strategy strategy, double zipf, double share) {
  checkpointer ckpt{adaptive<4>{}, strategy, discard{}};
  auto table = tables.attach(ckpt);
  trainer mine(tables, zipf, 2);
  const int turns = mlp_turns(mine);
  const auto step = [&](steps& into) {
    const auto start = clock_type::now();
    const double cpu = cpu_seconds();
    const auto ids = mine.next();
    table.touch(ids);
    into.touch += seconds_since(start);
    mine.look_up(ids);
    mine.run_mlp(turns);
    mine.update(ids);
    into.cpu += cpu_seconds() - cpu;
    into.wall.push_back(seconds_since(start));
    into.all += into.wall.back();
  };
  std::vector<double> wall, cpu, copying;
  double aside_mib = 0, rows_aside = 0, touch_share = 0;
  const std::uint64_t stride = share < 1 ? std::uint64_t(16 / share) : 0;
  for (int i = 0; i < 2 * chosen.repeats + 1; ++i) {  // a few per cent: less than other load may add
    if (share < 1)
      for (std::uint64_t id = 0; id + 16 <= tables.rows(); id += stride) table.touch_range(id, 16);
    steps before, during;
    for (const auto start = clock_type::now(); seconds_since(start) < (chosen.quick ? .1 : 1);) step(before);
    const ticket saved = ckpt.save(std::uint64_t(i));
    while (!saved.done()) step(during);
    wall.push_back(during.all / double(during.wall.size()) / (before.all / double(before.wall.size())));
    cpu.push_back(during.cpu / double(during.wall.size()) / (before.cpu / double(before.wall.size())));
    if (share == 1) {
      std::atomic<bool> stop{false};
      std::thread copies([&] { copy_until(stop, tables, saved.figures().total_seconds); });
      steps beside;
      for (std::size_t k = 0; k < during.wall.size(); ++k) step(beside);
      stop = true;
      copies.join();
      copying.push_back(beside.all / double(beside.wall.size()) / (before.all / double(before.wall.size())));
    }
    touch_share = before.touch / before.all;
    aside_mib = std::max(aside_mib, double(saved.figures().aside_bytes) / (1 << 20));
    rows_aside = double(saved.figures().aside_rows) / double(saved.figures().rows);
  }
  std::printf(
      "  %-8s %-6s step %.3f times as long (CPU %.3f); touch without a save %.2f %% of a step; "
      "aside %.1f MiB at most, %.1f %% of the rows\n",
      zipf > 0 ? "Zipf," : "uniform,", share < 1 ? "delta:" : "full:", quantile(wall, .5), quantile(cpu, .5),
      100 * touch_share, aside_mib, 100 * rows_aside);
  const double beside_copies = copying.empty() ? -1 : quantile(copying, .5);
  if (share == 1)
    std::printf("    beside a thread that copies the rows as fast and does nothing else: %.3f\n",
                beside_copies);
  line(chosen,
       {.name = zipf > 0 ? "zipf" : "uniform ids",
        .gib = chosen.gib,
        .codec = "adaptive",
        .bits = 4,
        .share = share,
        .extra_mib = aside_mib,
        .slowdown = quantile(wall, .5)},
       ", \"slowdown_cpu\": " + number(quantile(cpu, .5)) + ", \"touch_share\": " + number(touch_share) +
           ", \"slowdown_by_copies\": " + number(beside_copies));
}

// --------------------------------------------------------------------------------------------------- durable

/// The disk's own rate: O_DIRECT, 4 MiB at a time, four under way, fsync. GB/s.
double disk_rate(const settings& chosen) {
  const std::string path = chosen.folder + "/raw";
  const std::uint64_t piece = std::uint64_t{4} << 20, size = chosen.quick ? 64 * piece : 512 * piece;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0666);
  if (file < 0) return -1;
  if (::posix_fallocate(file, 0, ::off_t(size)) != 0) return -1;
  std::atomic<std::uint64_t> next{0};
  const auto start = clock_type::now();
  (void)with_threads(4, [&](unsigned) {
    void* const buffer = std::aligned_alloc(4096, piece);
    std::memset(buffer, 42, piece);
    for (std::uint64_t at; (at = next.fetch_add(piece)) < size;)
      if (::pwrite(file, buffer, piece, ::off_t(at)) <= 0) break;
    std::free(buffer);
  });
  ::fsync(file);
  const double seconds = seconds_since(start);
  ::close(file);
  ::unlink(path.c_str());
  return double(size) / giga / seconds;
}

struct durable_save {
  double seconds = 0, extra_mib = 0;
  save_figures figures;
};

/// One save to a sink, the best of several; the trainer stands still.
template <class Codec, class Strategy, class Sink>
durable_save best_save(const settings& chosen, model& tables, const Codec& codec, Strategy strategy,
                       Sink store, unsigned workers, double share) {
  durable_save best;
  checkpointer ckpt{codec, strategy, store, options{.keep = {.last = 1}, .workers = workers}};
  auto table = tables.attach(ckpt);
  std::mt19937_64 random(3);
  std::vector<std::uint64_t> ids(share < 1 ? std::size_t(double(tables.rows()) * share * 1.05) : 0);
  if (share < 1) ckpt.save(0).wait();
  for (int i = 1; i <= chosen.repeats; ++i) {
    for (auto& id : ids) id = random() % tables.rows();
    table.touch(ids);
    reset_peak();
    const double before = resident_mib("VmRSS:");
    const auto start = clock_type::now();
    const ticket saved = ckpt.save(std::uint64_t(i));
    saved.wait();
    const double seconds = seconds_since(start);
    best.extra_mib = std::max(best.extra_mib, resident_mib("VmHWM:") - before);
    if (best.seconds == 0 || seconds < best.seconds) best.seconds = seconds, best.figures = saved.figures();
  }
  return best;
}

std::string folder_of(const settings& chosen, const char* name) {
  const std::string folder = chosen.folder + "/" + name;
  std::filesystem::remove_all(folder);
  return folder;
}

template <class Codec>
void durable(const settings& chosen, model& tables, const Codec& codec, const char* name, unsigned workers,
             double disk) {
  const double model_gb = double(tables.bytes()) / giga;
  const durable_save nowhere = best_save(chosen, tables, codec, full{}, discard{}, workers, 1);
  const std::string folder = folder_of(chosen, "durable");
  const durable_save full_one = best_save(chosen, tables, codec, full{}, directory{folder}, workers, 1);
  std::filesystem::remove_all(folder);
  const durable_save delta = best_save(chosen, tables, codec, consecutive{}, directory{folder}, workers, .1);
  std::filesystem::remove_all(folder);
  const double rate = model_gb / full_one.seconds, encode = model_gb / nowhere.seconds;
  std::printf(
      "  %-10s %u worker%s %6.2f GB/s of float32 durable, %6.2f encoded only; %5.2f times the disk's "
      "%.2f GB/s; 10 %% delta %5.1f times faster; %4.0f MiB extra\n",
      name, workers, workers == 1 ? ": " : "s:", rate, encode, rate / disk, disk,
      full_one.seconds / delta.seconds, std::max(full_one.extra_mib, delta.extra_mib));
  line(chosen,
       {.name = "durable",
        .gib = chosen.gib,
        .codec = name,
        .bits = Codec::bits,
        .rate = rate,
        .disk = disk,
        .extra_mib = full_one.extra_mib},
       ", \"workers\": " + std::to_string(workers) + ", \"encode_gb_per_s\": " + number(encode));
  line(chosen,
       {.name = "durable delta",
        .gib = chosen.gib,
        .codec = name,
        .bits = Codec::bits,
        .share = .1,
        .rate = model_gb / delta.seconds,
        .disk = disk,
        .extra_mib = delta.extra_mib},
       ", \"workers\": " + std::to_string(workers) +
           ", \"times_faster\": " + number(full_one.seconds / delta.seconds));
}

/// Seconds to durable where storage is slow, and so the shortest interval between two saves.
template <class Codec>
void throttled_save(const settings& chosen, const Codec& codec, const char* name, double bytes_per_second) {
  const double gib = std::min(chosen.gib, chosen.quick ? .03 : .5);
  huge_model tables(gib);
  checkpointer ckpt{codec, full{}, throttled<discard>{discard{}, bytes_per_second}};
  tables.attach(ckpt);
  const auto start = clock_type::now();
  ckpt.save(1).wait();
  const double seconds = seconds_since(start);
  std::printf("  %4.0f MB/s, %-10s %7.2f s for %.2g GiB: at most %.0f full saves an hour at 100 GiB\n",
              bytes_per_second / 1e6, name, seconds, gib, 3600 / (seconds * 100 / gib));
  line(chosen,
       {.name = "throttled",
        .gib = gib,
        .codec = name,
        .bits = Codec::bits,
        .rate = double(tables.bytes()) / giga / seconds,
        .disk = bytes_per_second / giga},
       ", \"seconds\": " + number(seconds));
}

[[nodiscard]] bool read_arguments(int argc, char** argv, settings& chosen) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick")
      chosen.quick = true, chosen.gib = .25, chosen.stall_gib = {.125, .25, .5}, chosen.repeats = 1;
    else if (word == "--gib" && i + 1 < argc)
      chosen.gib = std::strtod(argv[++i], nullptr),
      chosen.stall_gib = {chosen.gib / 4, chosen.gib, 3 * chosen.gib};
    else if (word == "--json" && i + 1 < argc)
      chosen.json = argv[++i];
    else if (word == "--folder" && i + 1 < argc)
      chosen.folder = argv[++i];
    else
      return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  settings chosen;
  chosen.folder =
      (std::filesystem::temp_directory_path() / ("checkrow-save-" + std::to_string(::getpid()))).string();
  if (!read_arguments(argc, argv, chosen))
    return std::fprintf(stderr, "usage: bench_save [--quick] [--gib N] [--folder PATH] [--json FILE]\n"), 2;
  if (!chosen.json.empty() && (chosen.out = std::fopen(chosen.json.c_str(), "w")) == nullptr)
    return std::perror(chosen.json.c_str()), 1;
  std::filesystem::create_directories(chosen.folder);

  std::printf("Stall of save(), every core busy, no scope open:\n");
  for (const double gib : chosen.stall_gib) {
    huge_model tables(gib);
    stalls(chosen, gib, tables, full{}, 1);
    stalls(chosen, gib, tables, always_delta{}, .25);
  }
  {
    huge_model tables(chosen.gib);
    std::printf("\nThe trainer while a save runs, %g GiB, adaptive 4 bits, one worker:\n", chosen.gib);
    for (const double zipf : {1.05, 0.0}) {
      slowdown(chosen, tables, full{}, zipf, 1);
      slowdown(chosen, tables, always_delta{}, zipf, .25);
    }
    const double disk = disk_rate(chosen);
    std::printf("\nDurable, %g GiB, in %s:\n", chosen.gib, chosen.folder.c_str());
    durable(chosen, tables, uniform<8>{}, "uniform 8", 1, disk);
    durable(chosen, tables, uniform<8>{}, "uniform 8", 2, disk);
    durable(chosen, tables, adaptive<4>{}, "adaptive 4", 1, disk);
    durable(chosen, tables, adaptive<4>{}, "adaptive 4", 2, disk);
    durable(chosen, tables, exact{}, "exact", 1, disk);
  }
  std::printf("\nStorage of so many bytes a second:\n");
  for (const double rate : {1e8, 1e9}) {
    throttled_save(chosen, exact{}, "exact", rate);
    throttled_save(chosen, uniform<8>{}, "uniform 8", rate);
    throttled_save(chosen, adaptive<4>{}, "adaptive 4", rate);
  }
  std::filesystem::remove_all(chosen.folder);
  if (chosen.out != nullptr) std::fclose(chosen.out);
}
