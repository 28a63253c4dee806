// What every row_codec has to do, whatever it is. Instantiate check_codec_contract<Codec>() for a model.
#pragma once

#include <checkrow/codecs/engine.hpp>
#include <checkrow/concepts.hpp>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "catch_shim.hpp"
#include "row_kinds.hpp"

namespace codec_contract {

using bytes = std::vector<std::byte>;

inline checkrow::column_shape float_shape(std::size_t width) {
  return {checkrow::element_type::float32, 4, static_cast<std::uint32_t>(width)};
}

/// (rows, width), packed.
struct float_rows {
  std::size_t count;
  std::size_t width;
  std::vector<float> values = std::vector<float>(count * width);

  [[nodiscard]] checkrow::column_shape shape() const { return float_shape(width); }
  [[nodiscard]] checkrow::row_view view() const {
    return {reinterpret_cast<const std::byte*>(values.data()), 4 * width};
  }
  [[nodiscard]] checkrow::row_span span() { return {reinterpret_cast<std::byte*>(values.data()), 4 * width}; }
  [[nodiscard]] std::span<float> row(std::size_t i) { return std::span(values).subspan(i * width, width); }
  [[nodiscard]] bool same_bits(const float_rows& other) const {
    return count == other.count && width == other.width &&
           std::memcmp(values.data(), other.values.data(), 4 * values.size()) == 0;
  }
};

/// Rows of all kinds in turn, from `first` on.
inline float_rows mixed_rows(std::uint64_t seed, std::size_t count, std::size_t width, int first = 0) {
  const checkrow::detail::default_float_environment environment;
  row_kinds::random_source random{seed};
  float_rows rows{count, width};
  for (std::size_t i = 0; i < count; ++i) {
    const auto k = (static_cast<std::size_t>(first) + i) % row_kinds::kind_count;
    row_kinds::fill_row(random, static_cast<row_kinds::kind>(k), rows.row(i));
  }
  return rows;
}

/// Encodes into a buffer of bound() bytes and checks that nothing after them is touched.
template <class Codec>
bytes encode(const Codec& codec, const checkrow::column_shape& shape, checkrow::row_view rows,
             std::size_t n) {
  constexpr std::byte canary{0xa5};
  const std::size_t bound = codec.bound(shape, n);
  bytes out(bound + 64, canary);
  const std::size_t written = codec.encode(shape, rows, n, out.data());
  REQUIRE(written <= bound);
  bool untouched = true;
  for (std::size_t i = bound; i < out.size(); ++i) untouched = untouched && out[i] == canary;
  REQUIRE(untouched);
  out.resize(written);
  return out;
}

template <class Codec>
bytes encode(const Codec& codec, const float_rows& rows) {
  return encode(codec, rows.shape(), rows.view(), rows.count);
}

/// Decodes from a copy on the heap of exactly that size, so that a sanitizer sees one byte too many.
template <class Codec>
bool decode(const Codec& codec, std::span<const std::byte> from, float_rows& to) {
  const std::unique_ptr<std::byte[]> copy(new std::byte[from.size()]);
  std::copy(from.begin(), from.end(), copy.get());
  return codec.decode(to.shape(), {copy.get(), from.size()}, to.count, to.span());
}

inline constexpr std::size_t widths[] = {2, 3, 7, 16, 64, 100, 128, 300, 10007};
inline std::size_t rows_for(std::size_t width) { return width > 1000 ? row_kinds::kind_count : 200; }

/// encode, decode, encode, decode: same bytes, same rows; and the same bytes when asked again.
template <class Codec>
void check_idempotence(const Codec& codec) {
  for (const std::size_t width : widths) {
    CAPTURE(width);
    const float_rows rows = mixed_rows(width, rows_for(width), width);
    const bytes first = encode(codec, rows);
    REQUIRE(first == encode(codec, rows));
    float_rows once{rows.count, width}, twice{rows.count, width};
    REQUIRE(decode(codec, first, once));
    const bytes second = encode(codec, once);
    REQUIRE(first == second);
    REQUIRE(decode(codec, second, twice));
    REQUIRE(once.same_bits(twice));
  }
}

template <class Codec>
void check_no_rows(const Codec& codec) {
  const float_rows none{0, 16};
  const bytes section = encode(codec, none);
  float_rows to{0, 16};
  REQUIRE(decode(codec, section, to));
  float_rows one{1, 16};
  REQUIRE_FALSE(decode(codec, section, one));
}

template <class Codec>
void check_wrong_sizes(const Codec& codec) {
  for (const std::size_t width : std::initializer_list<std::size_t>{2, 7, 16}) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{26}}) {
      CAPTURE(width, count);
      const bytes section = encode(codec, mixed_rows(5, count, width, 7));
      float_rows to{count, width};
      for (std::size_t size = 0; size < section.size(); ++size) {
        if (decode(codec, std::span(section).first(size), to)) FAIL("a prefix was accepted: " << size);
      }
      bytes longer = section;
      longer.push_back(std::byte{0});
      REQUIRE_FALSE(decode(codec, longer, to));
      // (A section does not hold its number of rows: a zero row more may have room in the padding.)
      float_rows more{count + 64, width}, less{count - 1, width};
      REQUIRE_FALSE(decode(codec, section, more));
      REQUIRE_FALSE(decode(codec, section, less));
    }
  }
  // Sizes that overflow must not wrap around.
  constexpr std::size_t greatest = std::numeric_limits<std::size_t>::max();
  const checkrow::column_shape widest{checkrow::element_type::float32, 4, 0xffffffff};
  REQUIRE(codec.bound(widest, greatest) == greatest);
  REQUIRE(codec.bound(widest, greatest / 8) == greatest);
  REQUIRE(codec.bound(widest, 1000) >= std::size_t{1000} * 4 * 0xffffffff);
  const bytes section = encode(codec, mixed_rows(5, 3, 4));
  for (const std::size_t n :
       {greatest, greatest / 4, greatest / 16, std::size_t{1} << 62, std::size_t{1} << 40}) {
    REQUIRE_FALSE(codec.decode(widest, section, n, {}));
    REQUIRE_FALSE(codec.decode(float_shape(4), section, n, {}));
  }
}

/// Whatever the bytes are, decode stays in bounds. What it returns is left open.
template <class Codec>
void check_hostile_bytes(const Codec& codec) {
  row_kinds::random_source random{77};
  std::size_t accepted = 0;
  for (const std::size_t width : std::initializer_list<std::size_t>{2, 7, 16, 100}) {
    const std::size_t count = row_kinds::kind_count;
    const bytes section = encode(codec, mixed_rows(width, count, width));
    float_rows to{count, width};
    for (int trial = 0; trial < 2000; ++trial) {
      bytes changed = section;
      switch (trial % 4) {
        case 0:  // noise of any length
          changed.resize(random.below(2 * section.size()));
          for (std::byte& b : changed) b = static_cast<std::byte>(random.next());
          break;
        case 1:  // a few bits
          for (std::uint64_t flips = 1 + random.below(3); flips != 0; --flips)
            changed[random.below(changed.size())] ^= static_cast<std::byte>(1 << random.below(8));
          break;
        case 2: {  // an aligned word, small or arbitrary
          const auto word = static_cast<std::uint32_t>((trial & 4) != 0 ? random.next() : random.below(4));
          std::memcpy(&changed[random.below(changed.size() / 4) * 4], &word, 4);
          break;
        }
        default:  // noise in the back part
          for (std::size_t i = random.below(changed.size()); i < changed.size(); ++i)
            changed[i] = static_cast<std::byte>(random.next());
          break;
      }
      accepted += decode(codec, changed, to) ? 1 : 0;
    }
  }
  CAPTURE(accepted);
  REQUIRE(accepted > 0);
}

/// Rows with gaps, picked by an index, at an odd address: the same bytes; and the same rows back.
template <class Codec>
void check_views(const Codec& codec) {
  const std::size_t count = 50;
  for (const std::size_t width : std::initializer_list<std::size_t>{3, 16, 100}) {
    CAPTURE(width);
    const float_rows rows = mixed_rows(9, count, width);
    const bytes packed = encode(codec, rows);
    const std::size_t stride = 4 * width + 5;
    std::vector<std::uint64_t> index(count);
    for (std::size_t i = 0; i < count; ++i) index[i] = (i * 7 + 3) % count;
    bytes gaps(1 + stride * count, std::byte{0x5a}), shuffled = gaps;
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(gaps.data() + 1 + stride * i, rows.view().row(i), 4 * width);
      std::memcpy(shuffled.data() + 1 + stride * index[i], rows.view().row(i), 4 * width);
    }
    REQUIRE(packed == encode(codec, rows.shape(), {gaps.data() + 1, stride}, count));
    REQUIRE(packed == encode(codec, rows.shape(), {shuffled.data() + 1, stride, index.data()}, count));

    float_rows plain{count, width};
    REQUIRE(decode(codec, packed, plain));
    bytes expected(1 + stride * count, std::byte{0x33}), got = expected;
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(expected.data() + 1 + stride * index[i], plain.view().row(i), 4 * width);
    REQUIRE(codec.decode(rows.shape(), packed, count, {got.data() + 1, stride, index.data()}));
    REQUIRE(got == expected);
  }
}

#if defined(__x86_64__)
inline constexpr std::uint64_t float_environments[] = {0x9fc0, 0x3f80, 0x7f80};  // FTZ and DAZ; down; to zero
inline std::uint64_t float_environment() { return __builtin_ia32_stmxcsr(); }
inline void set_float_environment(std::uint64_t to) { __builtin_ia32_ldmxcsr(static_cast<unsigned>(to)); }
inline constexpr std::uint64_t sticky_flags = 0x3f;
#elif defined(__aarch64__)
inline constexpr std::uint64_t float_environments[] = {1 << 24, 2 << 22, 3 << 22, 1 << 25,
                                                       1 << 26};  // and default NaN, other halves
inline std::uint64_t float_environment() {
  std::uint64_t now;
  asm volatile("mrs %0, fpcr" : "=r"(now));
  return now;
}
inline void set_float_environment(std::uint64_t to) { asm volatile("msr fpcr, %0" : : "r"(to) : "memory"); }
inline constexpr std::uint64_t sticky_flags = 0;
#endif

/// A float environment that flushes denormals or rounds elsewhere changes nothing, and is left as it was.
template <class Codec>
void check_float_environment(const Codec& codec) {
#if defined(__x86_64__) || defined(__aarch64__)
  const float_rows rows = mixed_rows(31, 200, 40);
  const bytes usual = encode(codec, rows);
  float_rows decoded{rows.count, rows.width}, flushed = decoded;
  REQUIRE(decode(codec, usual, decoded));
  for (const std::uint64_t environment : float_environments) {
    bytes other(codec.bound(rows.shape(), rows.count));
    const std::uint64_t before = float_environment();
    set_float_environment(environment);
    other.resize(codec.encode(rows.shape(), rows.view(), rows.count, other.data()));
    const bool good = codec.decode(rows.shape(), other, rows.count, flushed.span());
    const std::uint64_t after = float_environment() & ~sticky_flags;
    set_float_environment(before);
    REQUIRE(good);
    REQUIRE(after == environment);
    REQUIRE(other == usual);
    REQUIRE(flushed.same_bits(decoded));
  }
#else
  static_cast<void>(codec);
#endif
}

/// Forces an engine while it lives; true if this CPU has it.
class forced_engine {
 public:
  explicit forced_engine(checkrow::codec_engine engine) : here_(checkrow::use_codec_engine(engine)) {}
  ~forced_engine() { checkrow::use_codec_engine(checkrow::codec_engine::automatic); }
  forced_engine(const forced_engine&) = delete;
  forced_engine& operator=(const forced_engine&) = delete;
  explicit operator bool() const { return here_; }

 private:
  bool here_;
};

/// Rows of all kinds, or mostly usual ones, so that many batches are all narrow.
inline float_rows rows_for_engines(std::size_t count, std::size_t width, bool usual) {
  float_rows rows = mixed_rows(width * 3 + usual, count, width);
  if (!usual) return rows;
  row_kinds::random_source random{width};
  for (std::size_t i = 0; i < count; ++i)
    if (i % 40 != 7) row_kinds::fill_row(random, row_kinds::kind::gauss, rows.row(i));
  return rows;
}

/// Bytes and decoded rows of each engine are those of the scalar one: the oracle.
template <class Codec>
void check_engines(const Codec& codec) {
  std::vector<std::size_t> every_width;
  for (std::size_t width = 2; width <= 300; ++width) every_width.push_back(width);
  every_width.push_back(10007);
  for (const std::size_t width : every_width) {
    for (const bool usual : {false, true}) {
      const float_rows rows = rows_for_engines(width > 1000 ? 30 : width % 16 == 0 ? 200 : 53, width, usual);
      bytes expected;
      float_rows decoded{rows.count, width};
      for (const checkrow::codec_engine engine : checkrow::codec_engines) {
        const forced_engine forced(engine);
        if (!forced) continue;
        const bytes section = encode(codec, rows);
        float_rows back{rows.count, width}, streamed{rows.count + 64, width};
        const bool good = decode(codec, section, back);
        void* aligned = streamed.values.data();
        std::size_t room = 4 * streamed.values.size();
        std::align(64, 4 * rows.values.size(), aligned, room);
        const checkrow::row_span past_caches{static_cast<std::byte*>(aligned), 4 * width, nullptr, true};
        const bool also = codec.decode(rows.shape(), section, rows.count, past_caches) &&
                          std::memcmp(aligned, back.values.data(), 4 * back.values.size()) == 0;
        if (engine == checkrow::codec_engine::scalar) {
          expected = section;
          decoded = back;
        }
        if (good && also && section == expected && back.same_bits(decoded)) continue;
        CAPTURE(width, usual, static_cast<int>(engine));
        FAIL("this engine differs");
      }
    }
  }
}

template <class Codec>
void check_codec_contract(const Codec& codec = {}) {
  static_assert(checkrow::row_codec<Codec>);
  static_assert(Codec::id != 0 && !std::string_view(Codec::name).empty());
  for (const std::size_t width : widths) REQUIRE(codec.accepts(float_shape(width)));
  SECTION("all engines write and read the same") { check_engines(codec); }
  const forced_engine engine(
      GENERATE(from_range(std::begin(checkrow::codec_engines), std::end(checkrow::codec_engines))));
  if (!engine) return;
  SECTION("idempotent and deterministic") { check_idempotence(codec); }
  SECTION("no rows") { check_no_rows(codec); }
  SECTION("wrong sizes are rejected") { check_wrong_sizes(codec); }
  SECTION("hostile bytes are safe") { check_hostile_bytes(codec); }
  SECTION("any view gives the same bytes") { check_views(codec); }
  SECTION("the float environment has no say") { check_float_environment(codec); }
}

}  // namespace codec_contract
