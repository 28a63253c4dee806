// How fast a checkpoint comes back: against the disk's own rate, decoding alone and memcpy, all of one run.
//
// A table of `--gib` GiB of float32 weights, dim 64, and row-wise Adagrad, is saved once a codec by the
// normal save path, and restored into fresh memory: warm (the files in the page cache) and cold (dropped from
// it), by 1 and 2 threads, with and without huge pages. Then a base with 8 deltas against one full
// checkpoint. Extra memory is the peak of the resident set beyond what was there before, the table's and the
// page's own.
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <checkrow/checkrow.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string_view>

#include "tables.hpp"

namespace {

using namespace checkrow;
using namespace bench;

struct settings {
  double gib = 4;
  int repeats = 3;
  std::string json, folder;
  std::FILE* out = nullptr;
};

/// Drops the folder's files from the page cache, or reads them into it.
void make(bool cold, const std::string& folder) {
  std::vector<char> buffer(std::size_t{4} << 20);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const int file = ::open(entry.path().c_str(), O_RDONLY);
    if (cold)
      ::fsync(file), ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    else
      while (::read(file, buffer.data(), buffer.size()) > 0) continue;
    ::close(file);
  }
}

std::uint64_t bytes_in(const std::string& folder) {
  std::uint64_t all = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) all += entry.file_size();
  return all;
}

/// The disk's own rate: O_DIRECT, 4 MiB at a time, four under way. GB/s.
double disk_rate(const std::string& folder) {
  std::string largest;
  std::uint64_t size = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.file_size() > size) size = entry.file_size(), largest = entry.path();
  constexpr std::size_t piece = std::size_t{4} << 20;
  const int file = ::open(largest.c_str(), O_RDONLY | O_DIRECT);
  if (file < 0 || size < 4 * piece) return 0;
  std::atomic<std::uint64_t> next{0};
  const double seconds = with_threads(4, [&](unsigned) {
    void* const buffer = std::aligned_alloc(4096, piece);
    for (std::uint64_t at; (at = next.fetch_add(piece)) + piece <= size;)
      if (::pread(file, buffer, piece, ::off_t(at)) <= 0) break;
    std::free(buffer);
  });
  ::close(file);
  return double(size / piece * piece) / giga / seconds;
}

/// Decoding one chunk again and again into all of a table whose pages are there. GB of float32 a second.
template <class Codec>
double decode_rate(const Codec& codec, unsigned threads, model& to) {
  constexpr std::size_t rows = 16384;
  const column_shape shape{element_type::float32, 4, dim};
  model from(rows);
  fill(from, 3);
  std::vector<std::byte> encoded(codec.bound(shape, rows));
  const row_view view{reinterpret_cast<const std::byte*>(from.weights.data()), dim * 4};
  encoded.resize(codec.encode(shape, view, rows, encoded.data()));
  const std::size_t blocks = to.rows() / rows;
  std::atomic<std::size_t> next{0};
  const double seconds = with_threads(threads, [&](unsigned) {
    for (std::size_t b; (b = next.fetch_add(1)) < blocks;) {
      const row_span target{reinterpret_cast<std::byte*>(to.weights.data() + b * rows * dim), dim * 4,
                            nullptr, true};
      if (!codec.decode(shape, encoded, rows, target)) std::abort();
    }
  });
  return double(blocks * rows * dim * 4) / giga / seconds;
}

double memcpy_rate(unsigned threads, model& to) {
  const std::size_t half = to.weights.bytes() / 2 / threads;
  auto* const at = reinterpret_cast<std::byte*>(to.weights.data());
  const double seconds = with_threads(
      threads, [&](unsigned t) { std::memcpy(at + 2 * t * half, at + (2 * t + 1) * half, half); });
  return double(half * threads) / giga / seconds;
}

enum class pages { there, fresh, huge };
constexpr const char* names_of_pages[] = {"there", "fresh", "huge"};

/// The kernel's making of pages, GB/s.
double fault_rate(pages of, unsigned threads, std::size_t bytes) {
  const fresh_memory memory(bytes / sizeof(float));
  if (of == pages::huge) advise_huge_pages(memory.data(), memory.bytes());
  const std::size_t share = memory.size() / threads;
  const double seconds = with_threads(threads, [&](unsigned t) {
    for (std::size_t i = t * share; i < (t + 1) * share; i += 1024) memory.data()[i] = 1;
  });
  return double(memory.bytes()) / giga / seconds;
}

struct restore_case {
  const char* name;
  unsigned threads = 2;
  pages into = pages::huge;
  bool cold = false;
  restore_order order = restore_order::fastest;
};

struct measured {
  double seconds = 0, extra_mib = 0;
};

/// Best of several.
measured restore(const settings& chosen, const std::string& folder, std::size_t rows,
                 const restore_case& how) {
  measured best;
  for (int i = 0; i < chosen.repeats; ++i) {
    make(how.cold, folder);
    model fresh(rows);
    checkpointer ckpt{exact{}, directory{folder}};
    fresh.attach(ckpt);
    if (how.into == pages::there) std::memset(fresh.weights.data(), 0, fresh.weights.bytes());
    if (how.into == pages::there) std::memset(fresh.adagrad.data(), 0, fresh.adagrad.bytes());
    reset_peak();
    const double before = resident_mib("VmRSS:");
    const auto start = clock_type::now();
    const auto found = ckpt.restore({.verify_first = false,
                                     .threads = how.threads,
                                     .huge_pages = how.into == pages::huge,
                                     .order = how.order});
    const double seconds = seconds_since(start);
    if (!found || found->rows < rows) std::abort();
    const double table = how.into == pages::there ? 0 : double(fresh.bytes()) / (1 << 20);
    const double extra = resident_mib("VmHWM:") - before - table;
    if (best.seconds == 0 || seconds < best.seconds) best.seconds = seconds;
    best.extra_mib = std::max(best.extra_mib, extra);
  }
  return best;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return value > 0 ? text : "null";
}

void line(const settings& chosen, const restore_case& how, const char* codec, int bits, double share,
          double rate, double disk, double decode, double copying, const measured& took, double slowdown) {
  if (chosen.out == nullptr) return;
  std::fprintf(chosen.out,
               "{\"case\": \"%s\", \"gib\": %g, \"codec\": \"%s\", \"bits\": %d, \"dirty_share\": %s, "
               "\"stall_ms\": null, \"gb_per_s\": %.3f, \"disk_gb_per_s\": %s, \"extra_mib\": %.1f, "
               "\"slowdown\": %s, \"threads\": %u, \"pages\": \"%s\", \"decode_gb_per_s\": %s, "
               "\"memcpy_gb_per_s\": %s}\n",
               how.name, chosen.gib, codec, bits, number(share).c_str(), rate, number(disk).c_str(),
               took.extra_mib, number(slowdown).c_str(), how.threads, names_of_pages[int(how.into)],
               number(decode).c_str(), number(copying).c_str());
  std::fflush(chosen.out);
}

std::string folder_of(const settings& chosen, const char* name) {
  const std::string folder = chosen.folder + "/" + name;
  std::filesystem::remove_all(folder);
  return folder;
}

template <class Codec>
void one_codec(const settings& chosen, const Codec& codec, std::size_t rows) {
  const std::string folder = folder_of(chosen, "codec");
  double copying[2], decoding[2];
  {
    model saved(rows);
    fill(saved, 1);
    {
      checkpointer ckpt{codec, full{}, directory{folder}};
      saved.attach(ckpt);
      ckpt.save(1).wait();
    }
    for (unsigned t = 0; t < 2; ++t) {
      copying[t] = decoding[t] = 0;
      for (int i = 0; i < chosen.repeats; ++i) {
        copying[t] = std::max(copying[t], memcpy_rate(t + 1, saved));
        decoding[t] = std::max(decoding[t], decode_rate(codec, t + 1, saved));
      }
    }
  }
  const double size = double(bytes_in(folder)), model_bytes = double(rows) * (dim + 1) * 4;
  double disk = 0;
  for (int i = 0; i < chosen.repeats; ++i) make(true, folder), disk = std::max(disk, disk_rate(folder));
  const std::string name(Codec::name);
  std::printf("\n%s, %d bits: %.2f GB in memory, %.2f GB on disk, which reads %.2f GB/s\n", name.c_str(),
              int(Codec::bits), model_bytes / giga, size / giga, disk);
  std::printf("  %-6s %7s %6s %9s %16s %12s %12s %9s\n", "", "threads", "pages", "GB/s", "of what allows",
              "of decode", "of memcpy", "extra");
  for (const bool cold : {false, true})
    for (const pages into : {pages::there, pages::fresh, pages::huge})
      for (const unsigned threads : {1u, 2u}) {
        const restore_case how{cold ? "cold" : "warm", threads, into, cold};
        const measured took = restore(chosen, folder, rows, how);
        const double rate = model_bytes / giga / took.seconds, decode = decoding[threads - 1];
        const double faults =
            into == pages::there ? 0 : 1 / fault_rate(into, threads, std::size_t(model_bytes));
        double allowed = 1 / (1 / decode + faults);
        if (cold) allowed = std::min(allowed, disk * model_bytes / size);
        std::printf("  %-6s %7u %6s %9.2f %15.0f%% %11.0f%% %11.0f%% %5.0f MiB\n", how.name, threads,
                    names_of_pages[int(into)], rate, 100 * rate / allowed, 100 * rate / decode,
                    100 * rate / copying[threads - 1], took.extra_mib);
        line(chosen, how, name.c_str(), Codec::bits, 0, rate, disk, decode, copying[threads - 1], took, 0);
      }
  std::filesystem::remove_all(folder);
}

/// A base and 8 deltas, each of `share` of the rows, against one full checkpoint of the same model.
void deltas(const settings& chosen, std::size_t rows, double share) {
  using codec = adaptive<4>;
  const std::string chain = folder_of(chosen, "chain"), whole = folder_of(chosen, "whole");
  {
    model saved(rows);
    fill(saved, 2);
    checkpointer ckpt{codec{}, consecutive{}, directory{chain}};
    auto table = saved.attach(ckpt);
    ckpt.save(1).wait();
    std::mt19937_64 random(7);
    std::vector<std::uint64_t> ids(std::size_t(double(rows) * share));
    for (std::uint64_t step = 2; step <= 9; ++step) {
      for (auto& id : ids) id = random() % rows;
      table.touch(ids);
      ckpt.save(step).wait();
    }
    checkpointer once{codec{}, full{}, directory{whole}};
    saved.attach(once);
    once.save(1).wait();
  }
  const double bytes_share = double(bytes_in(chain)) / double(bytes_in(whole));
  std::printf(
      "\nA base and 8 deltas of %.0f %% of the rows, 4 bits: %.2f times the bytes of a full checkpoint\n",
      100 * share, bytes_share);
  for (const bool cold : {false, true}) {
    const measured full_one = restore(chosen, whole, rows, {.name = "full", .cold = cold});
    for (const auto order :
         {restore_order::fastest, restore_order::oldest_first, restore_order::newest_first}) {
      const char* const names[] = {"deltas", "deltas, oldest first", "deltas, newest first"};
      const restore_case how{.name = names[int(order)], .cold = cold, .order = order};
      const measured took = restore(chosen, chain, rows, how);
      const double slowdown = took.seconds / full_one.seconds / bytes_share;
      std::printf("  %s, %-22s %.3f s against %.3f s: %.2f times its bytes' share, %.0f MiB extra\n",
                  cold ? "cold" : "warm", how.name, took.seconds, full_one.seconds, slowdown, took.extra_mib);
      line(chosen, how, "adaptive", 4, share, double(rows) * (dim + 1) * 4 / giga / took.seconds, 0, 0, 0,
           took, slowdown);
    }
  }
  std::filesystem::remove_all(chain);
  std::filesystem::remove_all(whole);
}

}  // namespace

int main(int argc, char** argv) {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 18);  // what was freed is not resident, so that peaks tell
  settings chosen;
  chosen.folder =
      (std::filesystem::temp_directory_path() / ("checkrow-restore-" + std::to_string(::getpid()))).string();
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick")
      chosen.gib = 0.25, chosen.repeats = 1;
    else if (word == "--gib" && i + 1 < argc)
      chosen.gib = std::strtod(argv[++i], nullptr);
    else if (word == "--json" && i + 1 < argc)
      chosen.json = argv[++i];
    else if (word == "--folder" && i + 1 < argc)
      chosen.folder = argv[++i];
    else
      return std::fprintf(stderr, "usage: bench_restore [--quick] [--gib N] [--folder PATH] [--json FILE]\n"),
             2;
  }
  if (!chosen.json.empty()) {
    chosen.out = std::fopen(chosen.json.c_str(), "w");
    if (chosen.out == nullptr) return std::perror(chosen.json.c_str()), 1;
  }
  std::filesystem::create_directories(chosen.folder);
  const auto rows = std::size_t(chosen.gib * (1 << 30) / (dim * 4)) / 16384 * 16384;
  one_codec(chosen, adaptive<4>{}, rows);
  one_codec(chosen, uniform<8>{}, rows);
  one_codec(chosen, exact{}, rows);
  deltas(chosen, rows, 0.05);
  deltas(chosen, rows, 0.15);
  std::filesystem::remove_all(chosen.folder);
  if (chosen.out != nullptr) std::fclose(chosen.out);
}
