// Half and bfloat16: conversions against plain definitions, and rows of them through every quantizing codec.
#include <algorithm>
#include <bit>
#include <checkrow/codecs/builtin.hpp>
#include <checkrow/detail/engines.hpp>
#include <checkrow/detail/quantized_section.hpp>
#include <checkrow/detail/row_errors.hpp>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "catch_shim.hpp"
#include "codec_contract.hpp"

using namespace checkrow;
using codec_contract::bytes;
using detail::small_type;

namespace {

/// By the definition of the type: sign, exponent bits and fraction bits.
double value_of(small_type type, std::uint16_t bits) {
  const int fraction_bits = type == small_type::half ? 10 : 7, bias = type == small_type::half ? 15 : 127;
  const int exponent = (bits & 0x7fff) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, 1 - bias - fraction_bits)
                               : std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

constexpr std::uint16_t infinity_of(small_type type) { return type == small_type::half ? 0x7c00 : 0x7f80; }

/// (rows, width) of two bytes an element.
struct small_rows {
  element_type element;
  std::size_t count, width;
  std::vector<std::uint16_t> values = std::vector<std::uint16_t>(count * width);

  [[nodiscard]] column_shape shape() const { return {element, 2, static_cast<std::uint32_t>(width)}; }
  [[nodiscard]] small_type type() const {
    return element == element_type::float16 ? small_type::half : small_type::bfloat16;
  }
  [[nodiscard]] row_view view() const {
    return {reinterpret_cast<const std::byte*>(values.data()), 2 * width};
  }
  [[nodiscard]] row_span span() { return {reinterpret_cast<std::byte*>(values.data()), 2 * width}; }
};

/// float32 rows of all kinds, or of one, rounded; of half some 2^-20 and other scales, too, so that denormals
/// occur.
small_rows rounded_rows(element_type element, std::uint64_t seed, std::size_t count, std::size_t width,
                        int kind = -1) {
  const detail::default_float_environment environment;
  small_rows rows{element, count, width};
  row_kinds::random_source random{seed};
  std::vector<float> one(width);
  for (std::size_t i = 0; i < count; ++i) {
    const int k = kind < 0 ? static_cast<int>(i % (row_kinds::kind_count + 2)) : kind;
    if (k < row_kinds::kind_count)
      row_kinds::fill_row(random, static_cast<row_kinds::kind>(k), one);
    else
      row_kinds::fill_row(random, row_kinds::kind::gauss, one);
    const float scale = kind >= 0 || k < row_kinds::kind_count
                            ? 1.0f
                            : row_kinds::power_of_two(k == row_kinds::kind_count ? -24 + random.between(0, 8)
                                                                                 : random.between(-110, 110));
    for (std::size_t d = 0; d < width; ++d) {
      std::uint16_t& x = rows.values[i * width + d];
      x = rows.type() == small_type::half ? detail::narrow_half(one[d] * scale)
                                          : detail::narrow_bfloat16(one[d] * scale);
      if (k == static_cast<int>(row_kinds::kind::random_bits)) x = static_cast<std::uint16_t>(random.next());
    }
  }
  return rows;
}

template <class Codec>
small_rows round_trip(const Codec& codec, const small_rows& rows, bytes& section) {
  section = codec_contract::encode(codec, rows.shape(), rows.view(), rows.count);
  small_rows back{rows.element, rows.count, rows.width};
  REQUIRE(codec.decode(rows.shape(), section, rows.count, back.span()));
  return back;
}

std::uint32_t exceptions_in(const bytes& section) {
  std::uint32_t count;
  std::memcpy(&count, section.data(), 4);
  return count;
}

/// Mean of the rows' relative l2 errors.
template <class Codec>
double mean_error(const Codec& codec, const small_rows& rows) {
  bytes section;
  const small_rows back = round_trip(codec, rows, section);
  double sum = 0;
  for (std::size_t i = 0; i < rows.count; ++i)
    sum += detail::relative_error(rows.shape(), rows.view().row(i), back.view().row(i));
  return sum / static_cast<double>(rows.count);
}
/// The same of the same values as float32.
template <class Codec>
double mean_error_as_floats(const Codec& codec, const small_rows& rows) {
  codec_contract::float_rows wide{rows.count, rows.width}, back = wide;
  for (std::size_t i = 0; i < rows.values.size(); ++i)
    wide.values[i] = detail::widen(rows.type(), rows.values[i]);
  REQUIRE(codec_contract::decode(codec, codec_contract::encode(codec, wide), back));
  double sum = 0;
  for (std::size_t i = 0; i < rows.count; ++i)
    sum += detail::relative_error(wide.shape(), wide.view().row(i), back.view().row(i));
  return sum / static_cast<double>(rows.count);
}

template <class F>
void for_both_types(F&& f) {
  for (const element_type element : {element_type::float16, element_type::bfloat16}) f(element);
}

using symmetric_2 = uniform<2, symmetric>;
using symmetric_3 = uniform<3, symmetric>;
using symmetric_4 = uniform<4, symmetric>;
using symmetric_8 = uniform<8, symmetric>;
using greedy_2 = adaptive<2, greedy>;
using greedy_3 = adaptive<3, greedy>;
using greedy_4 = adaptive<4, greedy>;
using refit_2 = adaptive<2, refit>;
using refit_3 = adaptive<3, refit>;
using refit_4 = adaptive<4, refit>;
using refit_8 = adaptive<8, refit>;

}  // namespace

TEST_CASE("half and bfloat16 widen exactly and narrow to the nearest, half to even") {
  for (const small_type type : {small_type::half, small_type::bfloat16}) {
    std::size_t wrong = 0;
    for (unsigned i = 0; i < 0x10000; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const float wide = detail::widen(type, bits);
      if ((bits & 0x7fff) > infinity_of(type)) {
        wrong += wide == wide;
        continue;
      }
      if ((bits & 0x7fff) == infinity_of(type)) {
        wrong += !std::isinf(wide) || std::signbit(wide) != (bits >> 15 != 0);
        continue;
      }
      wrong += static_cast<double>(wide) != value_of(type, bits);
      wrong += detail::narrow(type, wide) != (bits == 0x8000 ? 0 : bits);
      // The point half way to the next greater magnitude, and its neighbours.
      const double next = value_of(type, static_cast<std::uint16_t>(bits + 1));
      const auto half_way = static_cast<float>((value_of(type, bits) + next) / 2);
      if (std::isinf(half_way) || static_cast<double>(half_way) != (value_of(type, bits) + next) / 2)
        continue;
      const auto even = static_cast<std::uint16_t>(bits + (bits & 1));
      const auto same = [&](float x, std::uint16_t expected) {
        return detail::narrow(type, x) != (expected == 0x8000 ? 0 : expected);
      };
      wrong += same(half_way, even);
      wrong += same(std::nextafter(half_way, static_cast<float>(next)), static_cast<std::uint16_t>(bits + 1));
      wrong += same(std::nextafter(half_way, wide), bits);
    }
    CHECK(wrong == 0);
    CHECK(detail::narrow(type, std::numeric_limits<float>::infinity()) == infinity_of(type));
    CHECK((detail::narrow(type, std::numeric_limits<float>::quiet_NaN()) & 0x7fff) > infinity_of(type));
  }
  CHECK(detail::narrow_half(65519.996f) == 0x7bff);
  CHECK(detail::narrow_half(65520.0f) == 0x7c00);
  CHECK(detail::narrow_half(1e30f) == 0x7c00);
}

// What the engines' loops are made of, at every element; compiled for each engine.
#define SMALL_LOOPS(name, engine, cpu)                                                                  \
  cpu void name(small_type type, const std::uint16_t* from, float* to, std::size_t n) {                 \
    for (std::size_t i = 0; i < n; i += detail::engine::lanes)                                          \
      detail::engine::store(                                                                            \
          reinterpret_cast<std::byte*>(to + i),                                                         \
          detail::engine::small_elements{type}.at(reinterpret_cast<const std::byte*>(from + i)));       \
  }                                                                                                     \
  cpu void name(small_type type, const float* from, std::uint16_t* to, float* rounded, std::size_t n) { \
    constexpr std::size_t lanes = detail::engine::lanes;                                                \
    const detail::engine::small_elements elements{type};                                                \
    for (std::size_t i = 0; i < n; i += 2 * lanes) {                                                    \
      const auto a = detail::engine::load(reinterpret_cast<const std::byte*>(from + i));                \
      const auto b = detail::engine::load(reinterpret_cast<const std::byte*>(from + i + lanes));        \
      detail::engine::store(reinterpret_cast<std::byte*>(to + i), elements.narrow(a, b));               \
      detail::engine::store(reinterpret_cast<std::byte*>(rounded + i), elements.rounded(a));            \
      detail::engine::store(reinterpret_cast<std::byte*>(rounded + i + lanes), elements.rounded(b));    \
    }                                                                                                   \
  }
#if defined(__x86_64__)
SMALL_LOOPS(convert_avx2, avx2, [[gnu::target("avx2,fma,f16c")]])
SMALL_LOOPS(convert_avx512, avx512,
            [[gnu::target("avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")]])
#elif defined(__aarch64__)
SMALL_LOOPS(convert_neon, neon, )
#endif
#undef SMALL_LOOPS

/// All values of a type, and back from the points half way between them and from their neighbours.
template <class Widen, class Narrow>
std::size_t wrong_conversions(small_type type, Widen&& widen, Narrow&& narrow) {
  const detail::default_float_environment environment;
  std::vector<std::uint16_t> values(0x10000);
  std::iota(values.begin(), values.end(), 0);
  std::vector<float> wide(values.size());
  widen(type, values.data(), wide.data(), values.size());
  std::size_t wrong = 0;
  std::vector<float> points;
  for (const std::uint16_t bits : values) {
    if ((bits & 0x7fff) > infinity_of(type)) continue;  // an engine does no row with NaN
    const float expected = detail::widen(type, bits);
    wrong += std::memcmp(&wide[bits], &expected, 4) != 0;
    if ((bits & 0x7fff) == infinity_of(type)) continue;
    const auto half_way =
        static_cast<float>((double{expected} + value_of(type, static_cast<std::uint16_t>(bits + 1))) / 2);
    for (const float toward : {-INFINITY, INFINITY})
      for (const float x : {expected, half_way}) points.push_back(std::nextafter(x, toward));
    points.push_back(expected);
    points.push_back(half_way);
  }
  for (const float x : {65519.996f, 65520.0f, 1e30f, INFINITY, -INFINITY, 1e-45f, -1e-45f})
    points.push_back(x);
  points.resize((points.size() + 63) / 64 * 64);
  std::vector<std::uint16_t> narrowed(points.size());
  std::vector<float> rounded(points.size());
  narrow(type, points.data(), narrowed.data(), rounded.data(), points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const float expected = detail::rounded_to(type, points[i]);
    wrong += narrowed[i] != detail::narrow(type, points[i]) || std::memcmp(&rounded[i], &expected, 4) != 0;
  }
  return wrong;
}

TEST_CASE("Engines widen and narrow half and bfloat16 as the scalar code does") {
  for (const small_type type : {small_type::half, small_type::bfloat16}) {
    const auto check = [&](auto widen, auto narrow) { CHECK(wrong_conversions(type, widen, narrow) == 0); };
#if defined(__x86_64__)
    if (has_codec_engine(codec_engine::avx2))
      check([](auto... a) { convert_avx2(a...); }, [](auto... a) { convert_avx2(a...); });
    if (has_codec_engine(codec_engine::avx512))
      check([](auto... a) { convert_avx512(a...); }, [](auto... a) { convert_avx512(a...); });
#elif defined(__aarch64__)
    check([](auto... a) { convert_neon(a...); }, [](auto... a) { convert_neon(a...); });
#else
    static_cast<void>(check);
#endif
  }
}

/// Bytes and decoded rows of each engine are those of the scalar one: rows side by side, with gaps at odd
/// addresses, gathered, and decoded past the caches.
template <class Codec>
void check_small_engines(const Codec& codec, const small_rows& rows) {
  const std::size_t bytes_of_row = 2 * rows.width, stride = bytes_of_row + 3;
  std::vector<std::uint64_t> index(rows.count);
  for (std::size_t i = 0; i < rows.count; ++i) index[i] = (i * 7 + 3) % rows.count;
  if (rows.count % 7 == 0) std::iota(index.begin(), index.end(), 0);
  bytes shuffled(1 + stride * rows.count);
  for (std::size_t i = 0; i < rows.count; ++i)
    std::memcpy(shuffled.data() + 1 + stride * index[i], rows.view().row(i), bytes_of_row);
  bytes expected;
  small_rows decoded = rows;
  for (const codec_engine engine : codec_engines) {
    const codec_contract::forced_engine forced(engine);
    if (!forced) continue;
    CAPTURE(rows.width, static_cast<int>(rows.element), static_cast<int>(engine));
    bytes section;
    const small_rows back = round_trip(codec, rows, section);
    if (engine == codec_engine::scalar) {
      expected = section;
      decoded = back;
      continue;
    }
    if (section != expected) FAIL("this engine encodes otherwise");
    if (back.values != decoded.values) FAIL("this engine decodes otherwise");
    const row_view gathered{shuffled.data() + 1, stride, index.data()};
    if (codec_contract::encode(codec, rows.shape(), gathered, rows.count) != expected)
      FAIL("this engine gathers otherwise");
    bytes to(1 + stride * rows.count, std::byte{0x5a}), same = to;
    for (std::size_t i = 0; i < rows.count; ++i)
      std::memcpy(same.data() + 1 + stride * index[i], decoded.view().row(i), bytes_of_row);
    if (!codec.decode(rows.shape(), section, rows.count, {to.data() + 1, stride, index.data()}) || to != same)
      FAIL("this engine scatters otherwise");
    bytes room(bytes_of_row * rows.count + 64);
    void* aligned = room.data();
    std::size_t left = room.size();
    std::align(64, bytes_of_row * rows.count, aligned, left);
    const row_span past{static_cast<std::byte*>(aligned), bytes_of_row, nullptr, true};
    if (!codec.decode(rows.shape(), section, rows.count, past) ||
        std::memcmp(aligned, decoded.values.data(), bytes_of_row * rows.count) != 0)
      FAIL("this engine streams otherwise");
  }
}

TEMPLATE_TEST_CASE("All engines write and read the same half and bfloat16 rows", "[codec]", uniform<2>,
                   uniform<3>, uniform<4>, uniform<8>, symmetric_2, symmetric_3, symmetric_4, symmetric_8,
                   greedy_2, greedy_3, greedy_4, refit_2, refit_3, refit_4, refit_8) {
  const TestType codec;
  constexpr bool is_greedy = TestType::id == greedy::id;
  for_both_types([&](element_type element) {
    for (std::size_t width = 2; width <= 300; width += is_greedy ? 37 : 1) {
      for (const bool usual : {false, true}) {
        small_rows rows = rounded_rows(element, 3 * width + usual, width % 16 == 0 ? 200 : 53, width);
        if (usual) {
          const small_rows gauss =
              rounded_rows(element, width, rows.count, width, static_cast<int>(row_kinds::kind::gauss));
          for (std::size_t i = 0; i < rows.count; ++i)
            if (i % 40 != 7) std::copy_n(&gauss.values[i * width], width, &rows.values[i * width]);
        }
        check_small_engines(codec, rows);
      }
    }
    check_small_engines(codec, rounded_rows(element, 8, 30, 10007));
  });
}

TEMPLATE_TEST_CASE("All engines agree about every pair of neighbours", "[codec]", uniform<8>, symmetric_4,
                   refit_4, uniform<2>) {
  for_both_types([](element_type element) {
    for (const unsigned apart : {1u, 0x8000u, 0x0401u}) {
      small_rows rows{element, 0x10000, 2};
      for (unsigned i = 0; i < 0x10000; ++i) {
        rows.values[2 * i] = static_cast<std::uint16_t>(i);
        rows.values[2 * i + 1] = static_cast<std::uint16_t>(i ^ apart);
      }
      check_small_engines(TestType{}, rows);
    }
  });
}

/// Rows whose grid has a step of about an ulp of their greatest element, so that some codes have a value in
/// common.
small_rows crowded_rows(element_type element, std::uint64_t seed, int bits, std::size_t count,
                        std::size_t width) {
  const detail::default_float_environment environment;
  small_rows rows{element, count, width};
  row_kinds::random_source random{seed};
  const int fraction = element == element_type::float16 ? 10 : 7;
  for (std::size_t i = 0; i < count; ++i) {
    const int exponent =
        element == element_type::float16 ? random.between(-20, 12) : random.between(-80, 100);
    const float greatest = (1 + random.uniform()) * row_kinds::power_of_two(exponent);
    const float ulp =
        row_kinds::power_of_two(std::max(exponent - fraction, element == element_type::float16 ? -24 : -126));
    const float step = ulp * (random.below(4) == 0 ? 1 + 0.004f * (random.uniform() - 0.5f)
                                                   : 0.6f + 0.8f * random.uniform());
    const float sign = random.below(2) == 0 ? 1.0f : -1.0f;
    const auto top = static_cast<float>(detail::top_code(bits));
    for (std::size_t d = 0; d < width; ++d) {
      const float u = d == 0 ? 0.0f : d == 1 ? 1.0f : random.uniform();
      const float x = sign * (greatest - u * top * step);
      rows.values[i * width + d] = detail::narrow(rows.type(), x);
    }
  }
  return rows;
}

TEMPLATE_TEST_CASE("All engines agree where codes are as near as elements", "[codec]", uniform<2>, uniform<3>,
                   uniform<4>, uniform<8>, symmetric_8, refit_2, refit_4, refit_8) {
  for_both_types([](element_type element) {
    for (const std::size_t width : {8, 16, 32, 64, 100, 130})
      check_small_engines(TestType{}, crowded_rows(element, width, TestType::bits, 1000, width));
  });
}

TEMPLATE_TEST_CASE("Engines do usual half and bfloat16 rows themselves", "[codec]", uniform<4>, uniform<8>,
                   symmetric_4, refit_2, refit_8) {
  constexpr auto kind = TestType::id == refit::id ? detail::batch_kind::refit : detail::batch_kind::uniform;
  for_both_types([](element_type element) {
    for (const codec_engine engine : codec_engines) {
      const codec_contract::forced_engine forced(engine);
      if (!forced || engine == codec_engine::scalar) continue;
      const small_rows rows = rounded_rows(element, 6, 64, 50, static_cast<int>(row_kinds::kind::gauss));
      const detail::section_layout at(rows.shape(), rows.count, TestType::bits);
      bytes out(TestType{}.bound(rows.shape(), rows.count));
      const detail::encode_job job{rows.view(),
                                   rows.count,
                                   rows.width,
                                   at.stride,
                                   TestType::id == 3,
                                   out.data() + at.parameters,
                                   out.data() + at.codes,
                                   TestType::bits,
                                   rows.type()};
      CHECK(std::popcount(detail::small_encoder_of<TestType::bits, kind>(rows.width)(job, 0, rows.count)) <=
            1);
    }
  });
}

TEMPLATE_TEST_CASE("The float environment has no say in half and bfloat16 rows", "[codec]", uniform<4>,
                   uniform<8>, symmetric_3, refit_2) {
#if defined(__x86_64__) || defined(__aarch64__)
  for_both_types([](element_type element) {
    for (const codec_engine engine : codec_engines) {
      const codec_contract::forced_engine forced(engine);
      if (!forced) continue;
      const small_rows rows = rounded_rows(element, 31, 300, 40);
      bytes usual;
      const small_rows decoded = round_trip(TestType{}, rows, usual);
      for (const std::uint64_t environment : codec_contract::float_environments) {
        small_rows back = rows;
        bytes other(TestType{}.bound(rows.shape(), rows.count));
        const std::uint64_t before = codec_contract::float_environment();
        codec_contract::set_float_environment(environment);
        other.resize(TestType{}.encode(rows.shape(), rows.view(), rows.count, other.data()));
        const bool good = TestType{}.decode(rows.shape(), other, rows.count, back.span());
        codec_contract::set_float_environment(before);
        REQUIRE(good);
        REQUIRE(other == usual);
        REQUIRE(back.values == decoded.values);
      }
    }
  });
#endif
}

TEMPLATE_TEST_CASE("Half and bfloat16 rows come back the same again", "[codec]", uniform<2>, uniform<3>,
                   uniform<4>, uniform<8>, symmetric_2, symmetric_3, symmetric_4, symmetric_8, greedy_2,
                   greedy_3, greedy_4, refit_2, refit_3, refit_4, refit_8) {
  const TestType codec;
  const char* const scale = std::getenv("CHECKROW_LONG_ROWS");  // by hand
  const std::size_t more = scale != nullptr ? std::strtoull(scale, nullptr, 10) : 1;
  for_both_types([&](element_type element) {
    for (const std::size_t width : codec_contract::widths) {
      for (std::size_t round = 0; round < more; ++round) {
        CAPTURE(width, static_cast<int>(element), round);
        const small_rows rows = rounded_rows(element, width + 1000 * round,
                                             width > 1000  ? 60
                                             : width > 100 ? 120
                                                           : 400,
                                             width);
        bytes first, second;
        const small_rows once = round_trip(codec, rows, first);
        const small_rows twice = round_trip(codec, once, second);
        REQUIRE(first == second);
        REQUIRE(once.values == twice.values);
        // A view with gaps, at odd addresses: the same bytes.
        const std::size_t stride = 2 * width + 3;
        bytes gaps(1 + stride * rows.count);
        for (std::size_t i = 0; i < rows.count; ++i)
          std::memcpy(gaps.data() + 1 + stride * i, rows.view().row(i), 2 * width);
        REQUIRE(first == codec_contract::encode(codec, rows.shape(), {gaps.data() + 1, stride}, rows.count));
      }
    }
    CHECK_FALSE(codec.accepts(column_shape{element, 2, 1}));
    CHECK_FALSE(codec.accepts(column_shape{element, 4, 8}));
  });
}

TEMPLATE_TEST_CASE("Usual half and bfloat16 rows lose as little as float32 ones", "[codec]", uniform<2>,
                   uniform<4>, uniform<8>, symmetric_4, greedy_4, refit_2, refit_4) {
  const TestType codec;
  for_both_types([&](element_type element) {
    for (const auto kind : {row_kinds::kind::gauss, row_kinds::kind::flat, row_kinds::kind::trained}) {
      const small_rows rows = rounded_rows(element, 5, 1000, 64, static_cast<int>(kind));
      bytes section;
      static_cast<void>(round_trip(codec, rows, section));
      CAPTURE(static_cast<int>(element), static_cast<int>(kind));
      CHECK(exceptions_in(section) <= 1);
      const double error = mean_error(codec, rows), as_floats = mean_error_as_floats(codec, rows);
      // bfloat16 has 8 bits itself: half an ulp, 2^-9 at most, adds to the error.
      const double own = element == element_type::bfloat16 ? 0x1p-9 : 0x1p-12;
      CHECK(error <= 1.02 * std::sqrt(as_floats * as_floats + own * own));
    }
  });
}

/// Whether all engines accept the section; they have to agree, and to read the same rows.
template <class Codec>
bool decodes_alike(const Codec& codec, const bytes& section, const small_rows& like) {
  std::vector<small_rows> read;
  for (const codec_engine engine : codec_engines) {
    const codec_contract::forced_engine forced(engine);
    if (!forced) continue;
    small_rows to{like.element, like.count, like.width};
    if (!codec.decode(to.shape(), section, to.count, to.span())) to.values.clear();
    read.push_back(to);
    if (to.values != read.front().values) FAIL("engine " << static_cast<int>(engine) << " differs");
  }
  return !read.front().values.empty();
}

TEST_CASE("Engines read any two elements as the ends of a grid alike") {
  row_kinds::random_source random{8};
  for_both_types([&](element_type element) {
    const uniform<4> codec;
    for (int trial = 0; trial < 300; ++trial) {
      small_rows rows = rounded_rows(element, 2, 64, 9, static_cast<int>(row_kinds::kind::gauss));
      bytes section = codec_contract::encode(codec, rows.shape(), rows.view(), rows.count);
      // The same codes with any parameters: any scale but 0, offsets but the least.
      const detail::section_layout at(rows.shape(), rows.count, 4);
      bytes all(codec.bound(rows.shape(), rows.count));
      std::copy_n(section.begin(), at.parameters, all.begin());
      for (std::size_t i = 0; i < rows.count; ++i) {
        const detail::stored_parameters any{static_cast<std::uint16_t>(1 + random.below(0xffff)),
                                            static_cast<std::int16_t>(random.between(-32767, 32767))};
        std::memcpy(&all[at.parameters + 4 * i], &any, sizeof any);
      }
      const std::size_t size = detail::finish_section(at, rows.view(), 0, 4, all.data());
      all.resize(size);
      REQUIRE(decodes_alike(codec, all, rows));
    }
  });
}

TEST_CASE("Untrusted bytes of half rows are safe, and prefixes refused", "[codec]") {
  row_kinds::random_source random{3};
  for_both_types([&](element_type element) {
    const uniform<3> codec;
    const small_rows rows = rounded_rows(element, 9, 60, 7);
    const bytes section = codec_contract::encode(codec, rows.shape(), rows.view(), rows.count);
    small_rows to{element, rows.count, rows.width};
    for (std::size_t size = 0; size < section.size(); ++size) {
      const bytes prefix(section.begin(), section.begin() + static_cast<std::ptrdiff_t>(size));
      REQUIRE_FALSE(codec.decode(rows.shape(), prefix, rows.count, to.span()));
    }
    std::size_t accepted = 0;
    for (int trial = 0; trial < 4000; ++trial) {
      bytes changed = section;
      for (std::uint64_t flips = 1 + random.below(3); flips != 0; --flips)
        changed[random.below(changed.size())] ^= static_cast<std::byte>(1 << random.below(8));
      if (!decodes_alike(codec, changed, to)) continue;
      ++accepted;
    }
    CHECK(accepted > 0);
  });
}

TEST_CASE("Rows of half that no grid reproduces are kept exactly", "[codec]") {
  for_both_types([](element_type element) {
    for (const auto kind : {row_kinds::kind::not_finite, row_kinds::kind::constant, row_kinds::kind::zeros}) {
      const small_rows rows = rounded_rows(element, 4, 100, 16, static_cast<int>(kind));
      bytes section;
      const small_rows back = round_trip(refit_4{}, rows, section);
      for (std::size_t i = 0; i < rows.values.size(); ++i) {
        const bool zero = rows.values[i] == 0x8000 && kind != row_kinds::kind::not_finite;
        REQUIRE(back.values[i] == (zero ? 0 : rows.values[i]));
      }
    }
  });
}
