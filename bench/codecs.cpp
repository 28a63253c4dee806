// How fast each codec encodes and decodes rows that lie outside the caches, of float32, half and bfloat16, as
// a multiple of memcpy's speed over the same rows; and what it costs in bytes and in error.
//
// One core. Rounds of memcpy, encode, decode, decode with streaming stores follow each other. Each is timed
// in pieces of 32 MiB, a piece counts by its best round, and a figure is the sum of its pieces: so other load
// on the machine, which takes the core away for milliseconds, leaves few traces.
#include <algorithm>
#include <checkrow/codecs/builtin.hpp>
#include <checkrow/detail/small_floats.hpp>
#include <checkrow/format/row_ids.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using namespace checkrow;

constexpr std::size_t section_rows = 16384;
constexpr std::size_t piece_bytes = std::size_t{32} << 20;
constexpr const char* engine_names[] = {"automatic", "scalar", "avx2", "avx512", "neon"};

struct settings {
  std::size_t bytes = std::size_t{256} << 20;  ///< of rows
  int rounds = 9;
  std::string json;
  std::string only;  ///< lines that contain it
};

/// Memory at the address of a cache line.
class lines {
 public:
  explicit lines(std::size_t bytes)
      : data_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}))) {
    std::memset(data_, 0, bytes);
  }
  ~lines() { ::operator delete (data_, std::align_val_t{64}); }
  lines(const lines&) = delete;
  lines& operator=(const lines&) = delete;
  [[nodiscard]] std::byte* get() const { return data_; }

 private:
  std::byte* data_;
};

[[nodiscard]] float value_at(const std::byte* from, element_type element) {
  if (element == element_type::float32) return format::load<float>(from);
  const auto bits = format::load<std::uint16_t>(from);
  return element == element_type::float16 ? detail::widen_half(bits) : detail::widen_bfloat16(bits);
}

/// Gaussian rows, (rows, dim); the first 2^20 values are repeated.
void fill(std::byte* to, std::size_t bytes, element_type element) {
  constexpr std::size_t distinct = std::size_t{1} << 20;
  std::mt19937 random;
  std::normal_distribution<float> normal(0, 0.05f);
  const std::size_t size = element == element_type::float32 ? 4 : 2;
  std::vector<std::byte> some(distinct * size);
  for (std::size_t at = 0; at < some.size(); at += size) {
    const float x = normal(random);
    if (size == 4)
      format::store(&some[at], x);
    else
      format::store(&some[at],
                    element == element_type::float16 ? detail::narrow_half(x) : detail::narrow_bfloat16(x));
  }
  for (std::size_t at = 0; at < bytes; at += some.size())
    std::memcpy(to + at, some.data(), std::min(some.size(), bytes - at));
}

class stopwatch {
 public:
  /// Seconds since the last call.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// The best time of each piece, summed.
class best_pieces {
 public:
  explicit best_pieces(std::size_t pieces) : best_(pieces, 1e9) {}
  void add(std::size_t piece, double seconds) { best_[piece] = std::min(best_[piece], seconds); }
  [[nodiscard]] double seconds() const {
    double sum = 0;
    for (const double one : best_) sum += one;
    return sum;
  }

 private:
  std::vector<double> best_;
};

struct buffers {
  explicit buffers(std::size_t bytes)
      : size(bytes), rows(bytes), back(bytes), sections(bytes + bytes / 2 + (1 << 20)) {
    hold(element_type::float32);
  }
  void hold(element_type type) {
    element = type;
    element_bytes = type == element_type::float32 ? 4 : 2;
    fill(rows.get(), size, type);
  }
  std::size_t size, element_bytes = 4;
  element_type element = element_type::float32;
  lines rows, back, sections;
};

template <class Codec>
struct subject {
  const Codec& codec;
  const buffers& memory;
  std::size_t dim, rows;

  [[nodiscard]] column_shape shape() const {
    return {memory.element, static_cast<std::uint8_t>(memory.element_bytes), static_cast<std::uint32_t>(dim)};
  }
  [[nodiscard]] std::size_t row_bytes() const { return memory.element_bytes * dim; }
  [[nodiscard]] std::size_t pieces() const { return (rows + piece_rows() - 1) / piece_rows(); }

  void copy(best_pieces& times) const {
    each_piece(times, [&](std::size_t first, std::size_t end) {
      std::memcpy(memory.back.get() + first * row_bytes(), memory.rows.get() + first * row_bytes(),
                  (end - first) * row_bytes());
    });
  }
  /// Sections one after the other; returns the bytes of each.
  std::vector<std::size_t> encode(best_pieces& times) const {
    std::vector<std::size_t> sizes;
    std::size_t at = 0;
    each_section(times, [&](std::size_t first, std::size_t count) {
      const row_view from{memory.rows.get() + first * row_bytes(), row_bytes()};
      sizes.push_back(codec.encode(shape(), from, count, memory.sections.get() + at));
      at += aligned(sizes.back());
    });
    return sizes;
  }
  void decode(best_pieces& times, const std::vector<std::size_t>& sizes, bool streaming) const {
    std::size_t at = 0;
    auto size = sizes.begin();
    each_section(times, [&](std::size_t first, std::size_t count) {
      const row_span to{memory.back.get() + first * row_bytes(), row_bytes(), nullptr, streaming};
      if (!codec.decode(shape(), {memory.sections.get() + at, *size}, count, to)) {
        std::fprintf(stderr, "a section does not decode\n");
        std::exit(1);
      }
      at += aligned(*size++);
    });
  }
  [[nodiscard]] static std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  /// Mean relative l2 error of the first rows.
  [[nodiscard]] double error() const {
    const std::size_t some = std::min(rows, (std::size_t{1} << 19) / dim);
    double sum = 0;
    for (std::size_t r = 0; r < some; ++r) {
      double off = 0, norm = 0;
      for (std::size_t at = r * row_bytes(); at < (r + 1) * row_bytes(); at += memory.element_bytes) {
        const double x = value_at(memory.rows.get() + at, memory.element);
        const double y = value_at(memory.back.get() + at, memory.element);
        off += (x - y) * (x - y);
        norm += x * x;
      }
      sum += std::sqrt(off / norm);
    }
    return sum / static_cast<double>(some);
  }

 private:
  [[nodiscard]] std::size_t piece_rows() const {
    return std::max(section_rows, piece_bytes / row_bytes() / section_rows * section_rows);
  }
  template <class F>
  void each_piece(best_pieces& times, F&& work) const {
    stopwatch watch;
    for (std::size_t i = 0; i < pieces(); ++i) {
      work(i * piece_rows(), std::min(rows, (i + 1) * piece_rows()));
      times.add(i, watch.lap());
    }
  }
  template <class F>
  void each_section(best_pieces& times, F&& work) const {
    each_piece(times, [&](std::size_t first, std::size_t end) {
      for (; first < end; first += section_rows) work(first, std::min(section_rows, end - first));
    });
  }
};

/// Error of the paper's greedy search on the same float32 rows, 0 where it does not exist.
template <int Bits>
double greedy_error(const buffers& memory, std::size_t dim) {
  if constexpr (Bits == 8) {
    return 0;
  } else {
    if (memory.element != element_type::float32) return 0;
    static double known[512] = {};
    double& error = known[dim];
    if (error == 0) {
      const adaptive<Bits, greedy> codec;
      const subject<adaptive<Bits, greedy>> some{codec, memory, dim, (std::size_t{1} << 19) / dim};
      best_pieces unused(some.pieces());
      some.decode(unused, some.encode(unused), false);
      error = some.error();
    }
    return error;
  }
}

template <class Codec>
void measure(const Codec& codec, std::size_t dim, const buffers& memory, const settings& chosen,
             std::FILE* json) {
  const subject<Codec> all{codec, memory, dim, chosen.bytes / (memory.element_bytes * dim)};
  const double greedy = greedy_error<Codec::bits>(memory, dim);
  for (const codec_engine engine : codec_engines) {
    if (!use_codec_engine(engine)) continue;
    const char* const engine_name = engine_names[static_cast<int>(engine)];
    char label[120];
    const char* const element = to_string(memory.element);
    std::snprintf(label, sizeof label, "%.*s %d dim %zu %s%s%s", static_cast<int>(Codec::name.size()),
                  Codec::name.data(), int{Codec::bits}, dim, engine_name,
                  memory.element == element_type::float32 ? "" : " ",
                  memory.element == element_type::float32 ? "" : element);
    if (std::string_view(label).find(chosen.only) == std::string_view::npos) continue;

    subject<Codec> some = all;
    if (engine == codec_engine::scalar) some.rows = std::min(all.rows, (std::size_t{16} << 20) / dim);
    const best_pieces none(some.pieces());
    best_pieces copies = none, encodes = none, decodes = none, streams = none;
    std::vector<std::size_t> sizes;
    const int rounds = engine == codec_engine::scalar ? 3 : chosen.rounds;
    for (int round = 0; round < rounds; ++round) {
      some.copy(copies);
      sizes = some.encode(encodes);
      some.decode(decodes, sizes, false);
      some.decode(streams, sizes, true);
    }
    const double copying = copies.seconds(), encoding = encodes.seconds();
    const double decoding = decodes.seconds(), streaming = streams.seconds();
    const double error = some.error();
    const double gigabytes = static_cast<double>(some.rows * some.row_bytes()) * 1e-9;
    std::size_t size = 0;
    for (const std::size_t one : sizes) size += subject<Codec>::aligned(one);
    const double per_row = static_cast<double>(size) / static_cast<double>(some.rows);
    const double codes = static_cast<double>(detail::packed_bytes(dim, Codec::bits));
    std::printf("%-48s %7.2f %7.2f %9.2f %10.5f", label, copying / encoding, copying / decoding,
                copying / streaming, error);
    if (greedy != 0)
      std::printf(" %10.4f", error / greedy);
    else
      std::printf(" %10s", "-");
    std::printf(" %9.2f %9.2f %7.1f\n", per_row, per_row - codes, gigabytes / copying);
    std::fflush(stdout);
    if (json == nullptr) continue;
    std::fprintf(json, R"({"codec": "%.*s", "bits": %d, "dim": %zu, "engine": "%s", "element": "%s", )",
                 static_cast<int>(Codec::name.size()), Codec::name.data(), int{Codec::bits}, dim, engine_name,
                 element);
    std::fprintf(json, R"("encode_vs_memcpy": %.3f, "decode_vs_memcpy": %.3f, )", copying / encoding,
                 copying / decoding);
    std::fprintf(json, R"("decode_streaming_vs_memcpy": %.3f, "rel_error": %.6f, )", copying / streaming,
                 error);
    if (greedy != 0) std::fprintf(json, R"("error_vs_greedy": %.4f, )", error / greedy);
    std::fprintf(json, R"("encode_gb_per_s": %.3f, "decode_gb_per_s": %.3f, )", gigabytes / encoding,
                 gigabytes / decoding);
    std::fprintf(json, "\"bytes_per_row\": %.3f, \"metadata_bytes_per_row\": %.3f}\n", per_row,
                 per_row - codes);
    std::fflush(json);
  }
}

/// A share of the rows, in order, encoded where they lie, against copies of the same rows to a buffer.
template <class Codec>
void measure_gather(const Codec& codec, std::size_t dim, double dirty, const buffers& memory,
                    const settings& chosen, std::FILE* json) {
  const std::size_t rows = chosen.bytes / (4 * dim);
  const column_shape shape{element_type::float32, 4, static_cast<std::uint32_t>(dim)};
  std::vector<std::uint64_t> index;
  std::mt19937 random(7);
  const auto limit = static_cast<std::uint32_t>(dirty * 4294967295.0);
  for (std::uint64_t i = 0; i < rows; ++i)
    if (random() < limit) index.push_back(i);
  for (const codec_engine engine : codec_engines) {
    if (engine == codec_engine::scalar || !use_codec_engine(engine)) continue;
    char label[120];
    std::snprintf(label, sizeof label, "%.*s %d dim %zu %s, %.0f %% dirty",
                  static_cast<int>(Codec::name.size()), Codec::name.data(), int{Codec::bits}, dim,
                  engine_names[static_cast<int>(engine)], 100 * dirty);
    if (std::string_view(label).find(chosen.only) == std::string_view::npos) continue;
    int round_byte = 0;
    // Sections are the pieces here; few rows would stay in the caches from one pass to the next.
    best_pieces copies((index.size() + section_rows - 1) / section_rows), encodes = copies;
    const auto forget_caches = [&] {
      std::memset(memory.back.get() + chosen.bytes / 2, round_byte++, chosen.bytes / 2);
    };
    for (int round = 0; round < chosen.rounds; ++round) {
      forget_caches();
      stopwatch watch;
      for (std::size_t first = 0; first < index.size(); first += section_rows) {
        const std::size_t end = std::min(index.size(), first + section_rows);
        for (std::size_t i = first; i < end; ++i)
          std::memcpy(memory.back.get() + i * 4 * dim, memory.rows.get() + index[i] * 4 * dim, 4 * dim);
        copies.add(first / section_rows, watch.lap());
      }
      forget_caches();
      watch.lap();
      std::size_t size = 0;
      for (std::size_t first = 0; first < index.size(); first += section_rows) {
        const std::size_t count = std::min(section_rows, index.size() - first);
        size += codec.encode(shape, {memory.rows.get(), 4 * dim, index.data() + first}, count,
                             memory.sections.get() + size);
        size = (size + 63) / 64 * 64;
        encodes.add(first / section_rows, watch.lap());
      }
    }
    const double copying = copies.seconds(), encoding = encodes.seconds();
    std::printf("%-60s %7.2f\n", label, copying / encoding);
    std::fflush(stdout);
    if (json == nullptr) continue;
    std::fprintf(json, R"({"codec": "%.*s", "bits": %d, "dim": %zu, "engine": "%s", "dirty": %.2f, )",
                 static_cast<int>(Codec::name.size()), Codec::name.data(), int{Codec::bits}, dim,
                 engine_names[static_cast<int>(engine)], dirty);
    std::fprintf(json, "\"gather_encode_vs_gather_copy\": %.3f}\n", copying / encoding);
  }
}

/// Reads it all, and does as little else as can be.
[[nodiscard]] std::uint64_t read_all(const std::byte* from, std::size_t bytes) {
  std::uint64_t all = 0;
#if defined(__x86_64__)
  __m128i sums[8] = {};
  for (std::size_t at = 0; at < bytes; at += sizeof sums)
    for (std::size_t i = 0; i < 8; ++i)
      sums[i] = _mm_xor_si128(sums[i], _mm_load_si128(reinterpret_cast<const __m128i*>(from + at + 16 * i)));
  for (const __m128i one : sums) all ^= static_cast<std::uint64_t>(_mm_cvtsi128_si64(one));
#else
  std::uint64_t sums[8] = {};
  for (std::size_t at = 0; at < bytes; at += sizeof sums)
    for (std::size_t i = 0; i < 8; ++i) sums[i] ^= format::load<std::uint64_t>(from + at + 8 * i);
  for (const std::uint64_t one : sums) all ^= one;
#endif
  return all;
}

/// What memory itself allows, as multiples of memcpy's speed: reading only, and writing only, past the caches
/// too.
void measure_memory(const buffers& memory, const settings& chosen, std::FILE* json) {
  const std::size_t pieces = chosen.bytes / piece_bytes;
  const best_pieces none(pieces);
  best_pieces copies = none, reads = none, writes = none, streams = none;
  volatile std::uint64_t kept = 0;
  for (int round = 0; round < chosen.rounds; ++round) {
    const auto each = [&](best_pieces& times, auto&& work) {
      stopwatch watch;
      for (std::size_t i = 0; i < pieces; ++i) {
        work(memory.rows.get() + i * piece_bytes, memory.back.get() + i * piece_bytes);
        times.add(i, watch.lap());
      }
    };
    each(copies, [](const std::byte* from, std::byte* to) { std::memcpy(to, from, piece_bytes); });
    each(reads, [&](const std::byte* from, std::byte*) { kept = kept ^ read_all(from, piece_bytes); });
    each(writes, [&](const std::byte*, std::byte* to) { std::memset(to, round + 1, piece_bytes); });
#if defined(__x86_64__)
    each(streams, [&](const std::byte*, std::byte* to) {
      const __m128i value = _mm_set1_epi8(static_cast<char>(round + 1));
      for (std::size_t at = 0; at < piece_bytes; at += 16)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), value);
      _mm_sfence();
    });
#endif
  }
  const double copying = copies.seconds();
  const double read = copying / reads.seconds(), write = copying / writes.seconds();
  const double stream = copying / streams.seconds();
  std::printf(
      "\nthe memory's limits, as a multiple of memcpy's speed: reading %.2f, writing %.2f, streamed writing "
      "%.2f\n",
      read, write, stream);
  if (json != nullptr)
    std::fprintf(json,
                 R"({"codec": "none", "read_vs_memcpy": %.3f, "write_vs_memcpy": %.3f, )"
                 "\"streamed_write_vs_memcpy\": %.3f}\n",
                 read, write, stream);
}

/// Row ids alone: bytes a row beside their entropy, and the time that each takes, in the cache.
void measure_ids(const settings& chosen, std::FILE* json) {
  std::printf("\nrow ids of a chunk:      bytes/row  of entropy  write, ns  read, ns\n");
  std::mt19937 random(7);
  for (const double dirty : {0.5, 0.25, 0.1, 0.02, 0.001}) {
    std::bernoulli_distribution is_dirty(dirty);
    std::vector<std::uint64_t> ids, back;
    for (std::uint64_t id = 0; ids.size() < section_rows; ++id)
      if (is_dirty(random)) ids.push_back(id);
    const double rows = double(ids.size());
    std::vector<std::byte> bytes;
    best_pieces writes(1), reads(1);
    for (int round = 0; round < 20 * chosen.rounds; ++round) {
      stopwatch watch;
      const format::index_plan plan = format::plan_index(ids);
      bytes.resize(plan.bytes);
      format::write_index(plan, ids, bytes.data());
      writes.add(0, watch.lap());
      if (!format::read_index(plan.kind, bytes, ids.front(), ids.back(), ids.size(), back) || back != ids)
        std::exit(1);
      watch.lap();
      (void)format::read_index(plan.kind, bytes, ids.front(), ids.back(), ids.size(), back);
      reads.add(0, watch.lap());
    }
    const double each = double(bytes.size()) / rows;
    const double entropy = -(std::log2(dirty) + (1 / dirty - 1) * std::log2(1 - dirty)) / 8;
    const double write = 1e9 * writes.seconds() / rows, read = 1e9 * reads.seconds() / rows;
    std::printf("  %5.1f %% of them dirty    %9.4f  %10.4f  %9.2f  %8.2f\n", 100 * dirty, each,
                each / entropy, write, read);
    if (json != nullptr)
      std::fprintf(json,
                   R"({"codec": "row ids", "dirty": %.3f, "bytes_per_row": %.4f, "of_entropy": %.4f, )"
                   "\"write_ns\": %.3f, \"read_ns\": %.3f}\n",
                   dirty, each, each / entropy, write, read);
  }
}

}  // namespace

int main(int argc, char** argv) {
  settings chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick") {
      chosen.bytes = std::size_t{64} << 20;
      chosen.rounds = 3;
    } else if (word == "--json" && i + 1 < argc) {
      chosen.json = argv[++i];
    } else if (word == "--only" && i + 1 < argc) {
      chosen.only = argv[++i];
    } else {
      std::fprintf(stderr, "usage: bench_codecs [--quick] [--json FILE] [--only TEXT]\n");
      return 2;
    }
  }
  std::FILE* const json = chosen.json.empty() ? nullptr : std::fopen(chosen.json.c_str(), "w");
  if (!chosen.json.empty() && json == nullptr) {
    std::fprintf(stderr, "bench_codecs: %s cannot be written\n", chosen.json.c_str());
    return 1;
  }
  buffers memory(chosen.bytes);
  std::printf("%-48s %7s %7s %9s %10s %10s %9s %9s %7s\n", "speed as a multiple of memcpy's", "encode",
              "decode", "streaming", "rel error", "vs greedy", "bytes/row", "metadata", "memcpy");
  const auto every_dim = [&](const auto& codec) {
    for (const std::size_t dim : {16, 32, 64, 128}) measure(codec, dim, memory, chosen, json);
  };
  every_dim(uniform<2>{});
  every_dim(uniform<3>{});
  every_dim(uniform<4>{});
  every_dim(uniform<8>{});
  every_dim(uniform<4, symmetric>{});
  every_dim(uniform<8, symmetric>{});
  every_dim(adaptive<2, refit>{});
  every_dim(adaptive<3, refit>{});
  every_dim(adaptive<4, refit>{});
  every_dim(adaptive<8, refit>{});
  std::printf("\nspeed as a multiple of a copy of the same rows\n");
  for (const std::size_t dim : {64, 128}) {
    for (const double dirty : {0.25, 0.02}) {
      measure_gather(uniform<4>{}, dim, dirty, memory, chosen, json);
      measure_gather(adaptive<4, refit>{}, dim, dirty, memory, chosen, json);
    }
  }
  measure_memory(memory, chosen, json);
  measure_ids(chosen, json);
  std::printf("\n");
  for (const element_type element : {element_type::float16, element_type::bfloat16}) {
    memory.hold(element);
    for (const std::size_t dim : {16, 64, 128}) {
      measure(uniform<4>{}, dim, memory, chosen, json);
      measure(uniform<8>{}, dim, memory, chosen, json);
      measure(uniform<4, symmetric>{}, dim, memory, chosen, json);
      measure(adaptive<2, refit>{}, dim, memory, chosen, json);
      measure(adaptive<4, refit>{}, dim, memory, chosen, json);
    }
  }
  if (json != nullptr) std::fclose(json);
}
