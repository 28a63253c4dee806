// Durable writes through the directory sink, against the disk's own rate past the page cache, in one run;
// small blobs; and reading back what the page cache does not hold.
//
// Rounds in which every case runs once, in another order each time. A case counts by the median of its ratio
// to the disk's rate within its round: other load on the machine hits both alike.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <checkrow/detail/file_calls.hpp>
#include <checkrow/detail/write_buffers.hpp>
#include <checkrow/sinks/directory.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace checkrow;

struct settings {
  std::size_t bytes = std::size_t{2} << 30;  ///< of a blob
  int rounds = 5;
  int small_blobs = 1000;
  std::string json;
  std::string folder = "build/bench/disk";
};

struct outcome {
  std::string name;
  std::vector<double> rate, ratio;  ///< GB/s, and that by the disk's in the same round
};

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "bench_disk: %s\n", why.c_str());
  std::exit(1);
}
void must(const status& done) {
  if (!done) give_up(done.error().text());
}
void must(bool done, const char* what) {
  if (!done) give_up(what + std::string(": ") + std::strerror(errno));
}

/// Seconds that `work` takes.
double timed(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Runs `work` in that many threads.
void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(work, t);
  for (std::thread& one : threads) one.join();
}

constexpr std::size_t block = std::size_t{4} << 20;

struct blocks {
  detail::page_memory memory[2] = {detail::page_memory(block), detail::page_memory(block)};
  blocks() {
    for (auto& one : memory) std::memset(one.data(), 0x5a, block);
  }
};

/// What the disk does with nobody in between: two threads, 4 MiB each, O_DIRECT, a preallocated file, fsync.
void write_raw(const settings& chosen, const blocks& from) {
  const std::string path = chosen.folder + "/raw";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0666);
  must(file >= 0, "open with O_DIRECT");
  (void)detail::system_calls.allocate(file, 0, chosen.bytes);
  std::atomic<std::size_t> next{0};
  in_threads(2, [&](int t) {
    for (std::size_t at; (at = next.fetch_add(block)) < chosen.bytes;)
      must(::pwrite(file, from.memory[t].data(), block, ::off_t(at)) == ::ssize_t(block), "write");
  });
  must(::fsync(file) == 0, "fsync");
  ::close(file);
}

void read_raw(const settings& chosen, const std::string& path, const blocks& to) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECT);
  must(file >= 0, "open with O_DIRECT");
  std::atomic<std::size_t> next{0};
  in_threads(2, [&](int t) {
    for (std::size_t at; (at = next.fetch_add(block)) < chosen.bytes;)
      must(::pread(file, to.memory[t].data(), block, ::off_t(at)) == ::ssize_t(block), "read");
  });
  ::close(file);
}

void write_plainly(const settings& chosen, const blocks& from) {
  const int file = ::open((chosen.folder + "/plain").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  must(file >= 0, "open");
  for (std::size_t at = 0; at < chosen.bytes; at += block)
    must(::write(file, from.memory[0].data(), block) == ::ssize_t(block), "write");
  must(::fsync(file) == 0, "fsync");
  ::close(file);
}

/// A blob in appends of 100 to 600 KB, as chunks come from the encoder.
void write_blob(directory& store, const std::string& name, std::size_t bytes, const blocks& from) {
  std::mt19937 random;
  auto writer = store.create(name);
  if (!writer) give_up(writer.error().text());
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t n = std::min<std::size_t>(100'000 + random() % 500'000, bytes - at);
    must(writer->append({from.memory[0].data() + random() % (block - 600'000) / 64 * 64, n}));
    at += n;
  }
  must(writer->commit());
}

/// Several threads read large pieces onto huge pages, as a restore does; nothing of it is in the page cache.
void read_blob(const settings& chosen, directory& store, const std::string& name, int threads) {
  auto reader = store.open(name);
  if (!reader) give_up(reader.error().text());
  std::atomic<std::size_t> next{0};
  in_threads(threads, [&](int) {
    const detail::page_memory to(block);
    for (std::size_t at; (at = next.fetch_add(block)) < chosen.bytes;)
      must(reader->read(at, {to.data(), block}));
  });
}

void drop_from_cache(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  must(file >= 0, "open");
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

struct blob_case {
  std::string name;
  directory store;
};

std::vector<blob_case> blob_cases(const settings& chosen) {
  std::vector<blob_case> out;
  const auto add = [&](const char* name, const write_options& options) {
    directory store{chosen.folder};
    store.write = options;
    out.push_back({name, store});
  };
  write_options options;
#if defined(CHECKROW_LIBURING)
  add("directory, io_uring", options);
#endif
  options.uring = false;
  add("directory, threads", options);
  options.direct = false;
  add("directory, page cache", options);
  return out;
}

std::vector<outcome> measure_large(const settings& chosen) {
  const blocks memory;
  std::vector<blob_case> cases = blob_cases(chosen);
  std::vector<outcome> out{{"disk, O_DIRECT", {}, {}}, {"page cache, then fsync", {}, {}}};
  for (blob_case& one : cases) {
    write_blob(one.store, "blob", 64 << 20, memory);  // its buffers are there from here on
    for (const error& note : one.store.notes())
      std::printf("%s: %s\n", one.name.c_str(), note.text().c_str());
    out.push_back({one.name, {}, {}});
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 1; i < out.size(); ++i) order.push_back(i);
  std::mt19937 random;
  for (int round = 0; round < chosen.rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      const double disk = double(chosen.bytes) / 1e9 / timed([&] { write_raw(chosen, memory); });
      const double rate = double(chosen.bytes) / 1e9 / timed([&] {
                            if (i == 1)
                              write_plainly(chosen, memory);
                            else
                              write_blob(cases[i - 2].store, "blob", chosen.bytes, memory);
                          });
      out[0].rate.push_back(disk), out[0].ratio.push_back(1);
      out[i].rate.push_back(rate), out[i].ratio.push_back(rate / disk);
      ::unlink((chosen.folder + "/raw").c_str());
      ::unlink((chosen.folder + "/plain").c_str());
      ::unlink((chosen.folder + "/blob").c_str());
    }
  }
  return out;
}

std::vector<outcome> measure_reads(const settings& chosen) {
  const blocks memory;
  directory store{chosen.folder};
  write_blob(store, "blob", chosen.bytes, memory);
  const std::string path = chosen.folder + "/blob";
  std::vector<outcome> out{{"disk, O_DIRECT", {}, {}}};
  for (const int threads : {1, 2, 4})
    out.push_back(
        {"directory, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads"), {}, {}});
  for (int round = 0; round < chosen.rounds; ++round)
    for (std::size_t i = 1; i < out.size(); ++i) {
      const double disk = double(chosen.bytes) / 1e9 / timed([&] { read_raw(chosen, path, memory); });
      drop_from_cache(path);
      const double rate =
          double(chosen.bytes) / 1e9 / timed([&] { read_blob(chosen, store, "blob", 1 << (i - 1)); });
      out[0].rate.push_back(disk), out[0].ratio.push_back(1);
      out[i].rate.push_back(rate), out[i].ratio.push_back(rate / disk);
    }
  ::unlink(path.c_str());
  return out;
}

/// 4 KiB each, durable one by one; and by the system calls that it takes at the least.
std::vector<outcome> measure_small(const settings& chosen) {
  const blocks memory;
  directory store{chosen.folder};
  must(store.create("first").ok(), "create");  // makes the folder
  const auto plainly = [&](const std::string& name) {
    const std::string path = chosen.folder + "/" + name, temporary = path + ".partial";
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
    must(file >= 0 && ::write(file, memory.memory[0].data(), 4096) == 4096 && ::fsync(file) == 0, "write");
    ::close(file);
    must(::rename(temporary.c_str(), path.c_str()) == 0, "rename");
    const int folder = ::open(chosen.folder.c_str(), O_RDONLY | O_DIRECTORY);
    must(folder >= 0 && ::fsync(folder) == 0, "fsync of the folder");
    ::close(folder);
  };
  std::vector<outcome> out{{"system calls", {}, {}}, {"directory", {}, {}}};
  for (int round = 0; round < chosen.rounds; ++round) {
    for (const bool ours : {false, true}) {
      const int blobs = chosen.small_blobs / chosen.rounds;
      const double seconds = timed([&] {
        for (int i = 0; i < blobs; ++i) {
          const std::string name = "small-" + std::to_string(i);
          if (!ours) {
            plainly(name);
            continue;
          }
          auto writer = store.create(name);
          if (!writer) give_up(writer.error().text());
          must(writer->append({memory.memory[0].data(), 4096}));
          must(writer->commit());
        }
      });
      out[ours].rate.push_back(blobs / seconds);
      out[ours].ratio.push_back(out[ours].rate.back() / out[0].rate.back());
      for (const blob& one : *store.list()) must(store.remove(one.name));
    }
  }
  return out;
}

void report(const char* title, const char* unit, const std::vector<outcome>& all, std::FILE* json) {
  std::printf("\n%-26s %10s %10s %12s\n", title, unit, "best", "of the first");
  for (const outcome& one : all) {
    const double best = *std::max_element(one.rate.begin(), one.rate.end());
    std::printf("%-26s %10.2f %10.2f %12.2f\n", one.name.c_str(), median(one.rate), best, median(one.ratio));
    if (json == nullptr) continue;
    std::fprintf(json, R"({"suite": "disk", "what": "%s", "case": "%s", "unit": "%s", )", title,
                 one.name.c_str(), unit);
    std::fprintf(json, "\"median\": %.3f, \"best\": %.3f, \"of_disk\": %.3f}\n", median(one.rate), best,
                 median(one.ratio));
  }
}

}  // namespace

int main(int argc, char** argv) {
  settings chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick") {
      chosen.bytes = std::size_t{256} << 20;
      chosen.rounds = 3;
      chosen.small_blobs = 90;
    } else if (word == "--json" && i + 1 < argc) {
      chosen.json = argv[++i];
    } else if (word == "--folder" && i + 1 < argc) {
      chosen.folder = argv[++i];
    } else {
      std::fprintf(stderr, "usage: bench_disk [--quick] [--json FILE] [--folder PATH]\n");
      return 2;
    }
  }
  std::FILE* const json = chosen.json.empty() ? nullptr : std::fopen(chosen.json.c_str(), "w");
  if (!chosen.json.empty() && json == nullptr) give_up(chosen.json + " cannot be written");
  report("durable writes", "GB/s", measure_large(chosen), json);
  report("cold reads", "GB/s", measure_reads(chosen), json);
  report("small blobs", "blobs/s", measure_small(chosen), json);
  ::rmdir(chosen.folder.c_str());
  if (json != nullptr) std::fclose(json);
}
