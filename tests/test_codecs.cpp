// The built-in codecs: the contract, and what each promises beyond it.
#include <algorithm>
#include <bit>
#include <checkrow/codecs/builtin.hpp>
#include <checkrow/detail/engines.hpp>
#include <checkrow/detail/pack_parameters.hpp>
#include <checkrow/detail/row_arithmetic.hpp>
#include <cmath>
#include <utility>

#include "codec_contract.hpp"

using namespace checkrow;
using codec_contract::bytes;
using codec_contract::float_rows;
using codec_contract::mixed_rows;
using row_kinds::kind;

namespace {

/// A search written by a user: the middle 80 % of the range.
struct middle_search {
  static constexpr std::uint16_t id = 0x8000;
  static constexpr std::string_view name = "middle";
  static constexpr std::uint32_t version = 1;
  detail::narrow_grid propose(const detail::float_row&, const detail::row_range& range,
                              int bits) const noexcept {
    const float tenth = (range.max - range.min) * 0.1f;
    return detail::narrow_from_range(range.min + tenth, range.max - tenth, bits);
  }
};
/// Proposes grids that miss the row; the codec has to refuse them.
struct useless_search {
  static constexpr std::uint16_t id = 0x8001;
  static constexpr std::string_view name = "useless";
  static constexpr std::uint32_t version = 1;
  detail::narrow_grid propose(const detail::float_row&, const detail::row_range& range,
                              int bits) const noexcept {
    return detail::narrow_from_range(range.min - 1, range.max + 2, bits);
  }
};

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
using greedy_8 = adaptive<8, greedy>;
using middle_4 = adaptive<4, middle_search>;
using useless_4 = adaptive<4, useless_search>;

float_rows rows_of(kind k, std::size_t count, std::size_t width) {
  row_kinds::random_source random{width * 131 + static_cast<std::uint64_t>(k)};
  float_rows rows{count, width};
  for (std::size_t i = 0; i < count; ++i) row_kinds::fill_row(random, k, rows.row(i));
  return rows;
}

template <class Codec>
float_rows round_trip(const Codec& codec, const float_rows& rows) {
  float_rows back{rows.count, rows.width};
  REQUIRE(codec_contract::decode(codec, codec_contract::encode(codec, rows), back));
  return back;
}

double squared_error(const float_rows& a, const float_rows& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double off = double{a.values[i]} - double{b.values[i]};
    sum += off * off;
  }
  return sum;
}

/// The parameters of a row and its codes, read bit by bit as the format says. Shares no code with the
/// library.
struct naive_row {
  unsigned scale;
  int offset;
  std::vector<unsigned> codes;
};
naive_row read_naively(const bytes& section, std::size_t rows, std::size_t row, std::size_t width,
                       std::size_t bits) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(section[i]); };
  const auto read = [&](std::size_t bit, std::size_t count) {
    unsigned value = 0;
    for (std::size_t i = 0; i < count; ++i) value |= (at((bit + i) / 8) >> (bit + i) % 8 & 1) << i;
    return value;
  };
  const std::size_t scale_bits = at(16), offset_bits = at(17), scale_shift = at(18);
  const unsigned lowest_scale = at(20) + 256 * at(21);
  const int lowest_offset = static_cast<std::int16_t>(at(22) + 256 * at(23));
  const std::size_t stride = (width * bits + 7) / 8, slot = 64 + row * stride;
  const std::size_t parameters = (64 + rows * stride + 63) / 64 * 64;
  const std::size_t place = 8 * parameters + row * (scale_bits + offset_bits);
  const unsigned scale = read(place, scale_bits), offset = read(place + scale_bits, offset_bits);
  naive_row out{0, static_cast<int>(offset), std::vector<unsigned>(width)};
  if (scale != 0) {
    out.scale = lowest_scale + ((scale - 1) << scale_shift);
    out.offset = lowest_offset + static_cast<int>(offset);
  }
  for (std::size_t i = 0; i < width; ++i) out.codes[i] = read(8 * slot + i * bits, bits);
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("Every codec keeps the contract", "[codec]", exact, uniform<2>, uniform<3>, uniform<4>,
                   uniform<8>, symmetric_2, symmetric_3, symmetric_4, symmetric_8, greedy_2, greedy_3,
                   greedy_4, refit_2, refit_3, refit_4, refit_8, middle_4, useless_4) {
  codec_contract::check_codec_contract<TestType>();
}

/// Two clusters near one end, and a few elements at the other: least squares may put a grid's start far
/// outside the row.
float_rows clustered_rows(row_kinds::random_source& random, std::size_t count, std::size_t width) {
  float_rows rows{count, width};
  for (std::size_t r = 0; r < count; ++r) {
    const float spread = random.uniform() * random.uniform() * random.uniform() * 0.3f;
    const float one = random.uniform(), other = one + (random.uniform() - 0.5f) * 0.3f;
    const float share = random.uniform();
    for (float& x : rows.row(r)) {
      const float center = random.uniform() < share ? one : other;
      x = std::clamp(center + spread * (random.uniform() - 0.5f), 0.0f, 1.0f);
    }
    rows.row(r)[0] = 0;
    if (random.below(3) != 0) rows.row(r)[1] = 1;
    if (random.below(2) == 0)
      for (float& x : rows.row(r)) x = 1 - x;
  }
  return rows;
}

TEMPLATE_TEST_CASE("Engines leave a refit that 16 bits do not hold to the scalar code", "[codec]", refit_2,
                   refit_3, refit_4, refit_8) {
  row_kinds::random_source random{TestType::bits};
  std::size_t left = 0;
  bool any_engine = false;
  for (int trial = 0; trial < 1500; ++trial) {
    const float_rows rows = clustered_rows(random, 16, 2 + random.below(trial % 3 == 0 ? 60 : 400));
    bytes expected;
    for (const codec_engine engine : codec_engines) {
      const codec_contract::forced_engine forced(engine);
      if (!forced) continue;
      const bytes section = codec_contract::encode(TestType{}, rows);
      if (engine == codec_engine::scalar) {
        expected = section;
        continue;
      }
      any_engine = true;
      if (section != expected) FAIL("engine " << static_cast<int>(engine) << " differs, trial " << trial);
      bytes some(TestType{}.bound(rows.shape(), rows.count));
      const detail::section_layout at(rows.shape(), rows.count, TestType::bits);
      const detail::encode_job job{
          rows.view(), rows.count, rows.width, at.stride, false, some.data() + 64, some.data() + at.codes};
      const auto batches = detail::batch_encoder_of<TestType::bits, detail::batch_kind::refit>(rows.width);
      left += static_cast<std::size_t>(std::popcount(batches(job, 0, rows.count)));
    }
  }
  if (any_engine) REQUIRE(left > 0);
}

TEST_CASE("Codes are packed and unpacked as a slow loop does it", "[codec]") {
  row_kinds::random_source random{1};
  const auto check = [&]<int Bits>(std::integral_constant<int, Bits>) {
    for (std::size_t count = 0; count < 70; ++count) {
      std::vector<std::uint8_t> codes(count), back(count);
      for (auto& c : codes) c = static_cast<std::uint8_t>(random.below(1u << Bits));
      const std::size_t size = (count * Bits + 7) / 8;
      bytes slow(size), fast(size, std::byte{0xff});
      for (std::size_t i = 0; i < count * Bits; ++i)
        slow[i / 8] |= static_cast<std::byte>((codes[i / Bits] >> i % Bits & 1) << i % 8);
      detail::pack_codes<Bits>(codes.data(), count, fast.data());
      REQUIRE(fast == slow);
      detail::unpack_codes<Bits>(fast.data(), count, back.data());
      REQUIRE(back == codes);
    }
  };
  check(std::integral_constant<int, 2>{});
  check(std::integral_constant<int, 3>{});
  check(std::integral_constant<int, 4>{});
  check(std::integral_constant<int, 8>{});
}

TEST_CASE("Parameters are packed and read as a slow loop does it", "[codec]") {
  using detail::stored_parameters;
  row_kinds::random_source random{5};
  for (int turn = 0; turn < 8000; ++turn) {
    if (!use_codec_engine(turn % 2 == 0 ? codec_engine::automatic : codec_engine::scalar)) FAIL("no engine");
    const std::size_t n = random.below(turn % 10 == 0 ? 700 : 40);
    const int shift = random.between(0, 15), exceptions = random.between(0, 4);
    const std::uint64_t scales = 1 + random.below(65535u >> shift),
                        offsets = 1 + random.below(1u << random.below(16));
    const auto lowest = static_cast<unsigned>(random.below((65535u >> shift) - scales + 1));
    const int least = -static_cast<int>(random.below(16384));
    std::vector<stored_parameters> rows(n);
    for (stored_parameters& row : rows) {
      if (random.between(0, 40) < exceptions * exceptions) {
        row.offset = static_cast<std::int16_t>(random.below(3));
        continue;
      }
      row.scale = static_cast<std::uint16_t>((lowest + 1 + random.below(scales)) << shift);
      row.offset = static_cast<std::int16_t>(least + static_cast<int>(random.below(offsets)));
    }

    detail::parameter_frame best;
    unsigned all = 0, greatest = 0, greatest_field = 0;
    int least_scale = 65536, least_offset = 32768;
    for (const auto& row : rows) {
      if (row.scale == 0) continue;
      all |= row.scale;
      least_scale = std::min<int>(least_scale, row.scale);
      least_offset = std::min<int>(least_offset, row.offset);
    }
    if (all != 0) {
      best.lowest_scale = static_cast<std::uint16_t>(least_scale);
      best.lowest_offset = static_cast<std::int16_t>(least_offset);
      while ((all >> best.scale_shift & 1) == 0) ++best.scale_shift;
    }
    std::vector<bool> bits;
    const auto fields = [&](const stored_parameters& row) {
      if (row.scale == 0) return std::pair<unsigned, unsigned>(0, row.offset);
      return std::pair<unsigned, unsigned>(((row.scale - best.lowest_scale) >> best.scale_shift) + 1,
                                           row.offset - best.lowest_offset);
    };
    for (const auto& row : rows) {
      greatest = std::max(greatest, fields(row).first);
      greatest_field = std::max(greatest_field, fields(row).second);
    }
    while (greatest >> best.scale_bits != 0) ++best.scale_bits;
    while (greatest_field >> best.offset_bits != 0) ++best.offset_bits;
    for (const auto& row : rows) {
      for (unsigned i = 0; i < best.scale_bits; ++i) bits.push_back((fields(row).first >> i & 1) != 0);
      for (unsigned i = 0; i < best.offset_bits; ++i) bits.push_back((fields(row).second >> i & 1) != 0);
    }
    bytes expected(best.bytes(n));
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i]) expected[i / 8] |= static_cast<std::byte>(1 << i % 8);

    bytes packed(4 * n);
    if (n != 0) std::memcpy(packed.data(), rows.data(), 4 * n);
    const detail::parameter_frame frame = detail::pack_parameters(packed.data(), n);
    REQUIRE(std::memcmp(&frame, &best, sizeof frame) == 0);
    REQUIRE(frame.possible());
    packed.resize(expected.size());
    REQUIRE(packed == expected);

    const std::unique_ptr<std::byte[]> exact(new std::byte[8 + packed.size()]());
    std::copy(packed.begin(), packed.end(), exact.get() + 8);
    const detail::parameter_reader reader(frame, exact.get() + 8, n);
    std::vector<stored_parameters> back(n);
    reader.read(0, n, back.data());
    REQUIRE((n == 0 || std::memcmp(back.data(), rows.data(), 4 * n) == 0));
    int furthest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const stored_parameters one = reader[i];
      REQUIRE((one.scale == rows[i].scale && one.offset == rows[i].offset));
      REQUIRE((reader.exceptions(i / 64 * 64) >> i % 64 & 1) == (rows[i].scale == 0 ? 1u : 0u));
      if (rows[i].scale != 0) furthest = std::max(furthest, std::abs(int{rows[i].offset}));
    }
    REQUIRE(reader.in_range(furthest));
    if (furthest > 0) REQUIRE_FALSE(reader.in_range(furthest - 1));
  }
  REQUIRE(use_codec_engine(codec_engine::automatic));
}

TEST_CASE("Parameters out of range are refused", "[codec]") {
  // Two narrow rows of 8 + 6 bits: scale codes 100 + ((f - 1) << shift), offsets -3 + g.
  const auto refused = [](unsigned f, unsigned g, unsigned shift, int limit) {
    const std::uint64_t fields = (1 | 5 << 8) | std::uint64_t{f | g << 8} << 14;
    std::byte packed[16]{};
    std::memcpy(packed + 8, &fields, 8);
    const detail::parameter_frame frame{8, 6, static_cast<std::uint8_t>(shift), 0, 100, -3};
    REQUIRE(frame.possible());
    return !detail::parameter_reader(frame, packed + 8, 2).in_range(limit);
  };
  CHECK_FALSE(refused(255, 63, 0, 60));
  CHECK_FALSE(refused(127, 5, 9, 3));
  CHECK(refused(130, 5, 9, 3));
  CHECK(refused(2, 7, 0, 3));
  CHECK_FALSE(refused(0, 63, 9, 3));
  CHECK_FALSE(detail::parameter_frame{17, 0, 0, 0, 1, 0}.possible());
  CHECK_FALSE(detail::parameter_frame{0, 17, 0, 0, 1, 0}.possible());
  CHECK_FALSE(detail::parameter_frame{16, 0, 2, 0, 1, 0}.possible());
  CHECK_FALSE(detail::parameter_frame{1, 0, 0, 1, 1, 0}.possible());
  CHECK_FALSE(detail::parameter_frame{1, 0, 0, 0, 0, 0}.possible());
}

TEST_CASE("A fused multiply-add in double arithmetic is the library's", "[codec]") {
  row_kinds::random_source random{4};
  const auto any = [&](int exponents) {
    const float x = row_kinds::power_of_two(random.between(-exponents, exponents)) * (1 + random.uniform());
    return (random.next() & 1) != 0 ? x : -x;
  };
  std::size_t different = 0;
  for (int trial = 0; trial < 300000; ++trial) {
    const int exponents = trial % 3 == 0 ? 2 : trial % 3 == 1 ? 13 : 60;
    const float a = any(exponents), b = any(exponents);
    float c = any(exponents);
    if (trial % 4 == 0) c = -a * b;  // cancels
    if (trial % 16 == 1) c *= 0x1p-40f;
    const float ours = detail::fused(a, b, c), theirs = std::fma(a, b, c);
    different += std::memcmp(&ours, &theirs, 4) != 0 ? 1 : 0;
  }
  REQUIRE(different == 0);
  REQUIRE(detail::fused(2, 3, INFINITY) == INFINITY);
  REQUIRE(detail::fused(0x1p-100f, 0x1.8p-49f, 0) == 0x1p-148f);  // half of the least denormal, to even
}

/// Narrow rows: decode is (m + q * G) * s / G, q is the nearest level, and no element is off by more than s
/// / 2.
template <class Codec>
void check_narrow_rows(bool symmetric) {
  const Codec codec;
  const int granularity = symmetric ? 2 : Codec::bits == 8 ? 8 : 16;
  const int top = (1 << Codec::bits) - 1;
  for (const std::size_t width : std::initializer_list<std::size_t>{2, 3, 7, 16, 64, 100, 300}) {
    const float_rows rows = mixed_rows(width + 3, 400, width);
    const bytes section = codec_contract::encode(codec, rows);
    float_rows back{rows.count, width};
    REQUIRE(codec_contract::decode(codec, section, back));
    std::size_t wrong = 0, too_far = 0, narrow = 0;
    for (std::size_t r = 0; r < rows.count; ++r) {
      const naive_row stored = read_naively(section, rows.count, r, width, Codec::bits);
      if (stored.scale == 0) continue;
      ++narrow;
      const double step = std::ldexp(double((stored.scale & 511) + 512), int(stored.scale >> 9) - 9 - 96);
      const int offset = symmetric ? -top : stored.offset;
      for (std::size_t i = 0; i < width; ++i) {
        const double y = (offset + int(stored.codes[i]) * granularity) * (step / granularity);
        if (y != double{back.values[r * width + i]}) ++wrong;
        const double x = double{rows.values[r * width + i]};
        if (std::abs(x - y) > 0.5 * step * (1 + 0x1p-15) + std::abs(x) * 0x1p-23) ++too_far;
      }
    }
    CAPTURE(width);
    REQUIRE(narrow > 100);
    REQUIRE(wrong == 0);
    REQUIRE(too_far == 0);
  }
}

TEST_CASE("Uniform rows are the nearest level of the grid on disk", "[codec]") {
  check_narrow_rows<uniform<2>>(false);
  check_narrow_rows<uniform<3>>(false);
  check_narrow_rows<uniform<4>>(false);
  check_narrow_rows<uniform<8>>(false);
  check_narrow_rows<symmetric_2>(true);
  check_narrow_rows<symmetric_4>(true);
  check_narrow_rows<symmetric_8>(true);
}

TEMPLATE_TEST_CASE("Rows far from zero are off by at most two steps or ulps", "[codec]", uniform<2>,
                   uniform<4>, uniform<8>, greedy_4, refit_4) {
  std::size_t wide = 0, too_far = 0;
  for (const kind k :
       {kind::far_from_zero, kind::few_ulps, kind::any_scale, kind::offset_edges, kind::constant}) {
    const float_rows rows = rows_of(k, 500, 24);
    const bytes section = codec_contract::encode(TestType{}, rows);
    const float_rows back = round_trip(TestType{}, rows);
    for (std::size_t r = 0; r < rows.count; ++r) {
      const naive_row stored = read_naively(section, rows.count, r, 24, TestType::bits);
      if (stored.scale != 0 || stored.offset != 1) continue;
      ++wide;
      const float* x = &rows.values[r * 24];
      const auto [least, greatest] = std::minmax_element(x, x + 24);
      const double step = (double{*greatest} - double{*least}) / ((1 << TestType::bits) - 1);
      const float most = std::max(std::abs(*least), std::abs(*greatest));
      const double ulp = double{std::nextafter(most, std::numeric_limits<float>::infinity())} - double{most};
      for (std::size_t i = 0; i < 24; ++i) {
        if (std::abs(double{x[i]} - double{back.values[r * 24 + i]}) > 2 * std::max(step, ulp)) ++too_far;
      }
    }
  }
  REQUIRE(wide > 1000);
  REQUIRE(too_far == 0);
}

TEMPLATE_TEST_CASE("Rows that no grid can hold come back bit for bit", "[codec]", exact, uniform<2>,
                   uniform<8>, symmetric_4, greedy_3, refit_2) {
  const TestType codec;
  for (const kind k : {kind::not_finite, kind::denormal}) {
    const float_rows rows = rows_of(k, 100, 33);
    REQUIRE(round_trip(codec, rows).same_bits(rows));
  }
  float_rows rows{3, 4};
  rows.values = {0x1p-97f, -0.0f, 0, 0, INFINITY, -0.0f, 1, 2, NAN, -INFINITY, -NAN, 5e-45f};
  REQUIRE(round_trip(codec, rows).same_bits(rows));
}

TEMPLATE_TEST_CASE("Constant rows and rows on their own grid are exact", "[codec]", uniform<2>, uniform<4>,
                   uniform<8>, greedy_2, greedy_4, refit_4) {
  const float_rows constant = rows_of(kind::constant, 200, 20);
  REQUIRE(round_trip(TestType{}, constant).same_bits(constant));
  float_rows grid{1, 8};
  grid.values = {1, 4, 2, 3, 1, 4, 3, 2};
  if (TestType::bits == 2) REQUIRE(round_trip(TestType{}, grid).same_bits(grid));
}

TEMPLATE_TEST_CASE("Negative zero becomes zero, except in raw rows", "[codec]", uniform<4>, symmetric_4,
                   greedy_4) {
  float_rows rows{1, 4};
  rows.values = {-0.0f, 0.0f, -0.0f, 0.0f};
  const float_rows back = round_trip(TestType{}, rows);
  for (const float x : back.values) REQUIRE((x == 0 && !std::signbit(x)));
}

TEMPLATE_TEST_CASE("A search lowers the error", "[codec]", greedy_2, greedy_3, greedy_4, refit_2, refit_3,
                   refit_4) {
  constexpr int bits = TestType::bits;
  for (const std::size_t width : std::initializer_list<std::size_t>{16, 64, 128}) {
    const float_rows rows = rows_of(kind::gauss, 1000, width);
    const double searched = squared_error(rows, round_trip(TestType{}, rows));
    const double greedy_one = squared_error(rows, round_trip(adaptive<bits, greedy>{}, rows));
    const double plain = squared_error(rows, round_trip(uniform<bits>{}, rows));
    CAPTURE(width, bits, searched / plain, searched / greedy_one);
    REQUIRE(searched < plain);
    REQUIRE(searched <= 1.005 * greedy_one);
    float_rows one{1, width}, one_searched = one, one_plain = one;
    std::size_t worse = 0;
    for (std::size_t r = 0; r < rows.count; ++r) {
      std::copy_n(&rows.values[r * width], width, one.values.begin());
      worse += squared_error(one, round_trip(TestType{}, one)) >
               1.05 * squared_error(one, round_trip(uniform<bits>{}, one));
    }
    CAPTURE(worse);
    REQUIRE(worse <= rows.count / 50);
  }
}

TEMPLATE_TEST_CASE("Every bit of a section's frame is checked", "[codec]", uniform<3>, symmetric_4,
                   greedy_2) {
  const std::size_t count = row_kinds::kind_count, width = 11;  // codes leave bits of their last byte unused
  const float_rows rows = mixed_rows(8, count, width);
  const bytes section = codec_contract::encode(TestType{}, rows);
  float_rows to{count, width};
  const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(section[i]); };
  const std::size_t stride = (width * TestType::bits + 7) / 8, codes_end = 64 + stride * count;
  const std::size_t parameters = (codes_end + 63) / 64 * 64;
  const std::size_t parameter_bits = count * (at(16) + at(17));
  const std::size_t directory = (parameters + (parameter_bits + 7) / 8 + 63) / 64 * 64;
  const std::size_t exceptions = at(0);
  REQUIRE(exceptions >= 2);
  std::size_t accepted = 0;
  const auto flip = [&](std::size_t bit) {
    bytes changed = section;
    changed[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    accepted += codec_contract::decode(TestType{}, changed, to) ? 1 : 0;
  };
  for (std::size_t bit = 0; bit < 8 * 64; ++bit)  // but for those that make other parameters
    if (bit < 8 * 18 || bit >= 8 * 24) flip(bit);
  for (std::size_t bit = 8 * 19; bit < 8 * 20; ++bit) flip(bit);
  for (std::size_t row = 0; row < count; ++row)
    for (std::size_t bit = width * TestType::bits; bit < 8 * stride; ++bit)
      flip(8 * (64 + row * stride) + bit);
  for (std::size_t bit = 8 * codes_end; bit < 8 * parameters; ++bit) flip(bit);
  for (std::size_t bit = 8 * parameters + parameter_bits; bit < 8 * (directory + 8 * exceptions); ++bit)
    flip(bit);
  REQUIRE(accepted == 0);

  bytes longer = section;  // more data, and a header that says so
  longer.resize(section.size() + 8);
  std::uint64_t data_bytes;
  std::memcpy(&data_bytes, &longer[8], 8);
  data_bytes += 8;
  std::memcpy(&longer[8], &data_bytes, 8);
  REQUIRE_FALSE(codec_contract::decode(TestType{}, longer, to));
}

TEST_CASE("Settings of the greedy search change its bytes but not how they decode", "[codec]") {
  const float_rows rows = rows_of(kind::gauss, 200, 32);
  const greedy_4 usual, finer{greedy{200, 0.7f}}, none{greedy{45, 0}};
  const greedy_4 odd{greedy{-5, -1.0f}}, odder{greedy{1, NAN}};
  const double error = squared_error(rows, round_trip(usual, rows));
  REQUIRE(squared_error(rows, round_trip(finer, rows)) < 1.01 * error);
  const bytes plain = codec_contract::encode(uniform<4>{}, rows);
  REQUIRE(codec_contract::encode(none, rows) == plain);
  REQUIRE(codec_contract::encode(odd, rows) == plain);
  REQUIRE(codec_contract::encode(odder, rows) == plain);
  REQUIRE(codec_contract::encode(useless_4{}, rows) == plain);
  REQUIRE(codec_contract::encode(middle_4{}, rows) != plain);
  REQUIRE(codec_contract::encode(greedy_4{greedy{45, 0.5f}}, rows) == codec_contract::encode(usual, rows));
}

TEST_CASE("Quantizing codecs take float32, half and bfloat16 columns of at least two elements", "[codec]") {
  const auto takes = [](const auto& codec, element_type type, std::uint8_t size, std::uint32_t width) {
    return codec.accepts(column_shape{type, size, width});
  };
  REQUIRE(takes(uniform<4>{}, element_type::float32, 4, 2));
  REQUIRE_FALSE(takes(uniform<4>{}, element_type::float32, 4, 1));
  REQUIRE(takes(greedy_4{}, element_type::float16, 2, 64));
  REQUIRE(takes(uniform<8>{}, element_type::bfloat16, 2, 2));
  REQUIRE_FALSE(takes(uniform<8>{}, element_type::bfloat16, 2, 1));
  REQUIRE_FALSE(takes(symmetric_8{}, element_type::int32, 4, 64));
  REQUIRE(takes(exact{}, element_type::uint8, 1, 1));
  REQUIRE(takes(exact{}, element_type(0x80), 255, 7));
}

TEST_CASE("Greedy at 8 bits comes back the same", "[codec]") {
  codec_contract::check_idempotence(greedy_8{.search = {.bins = 50}});
}

TEST_CASE("At 8 bits refit loses less than min and max", "[codec]") {
  for (const auto& [width, most] : {std::pair{16, 0.93}, std::pair{64, 0.97}, std::pair{128, 0.985}}) {
    const float_rows rows = rows_of(kind::gauss, 2000, static_cast<std::size_t>(width));
    CHECK(std::sqrt(squared_error(rows, round_trip(refit_8{}, rows)) /
                    squared_error(rows, round_trip(uniform<8>{}, rows))) < most);
  }
}

TEST_CASE("The decoder of built-in codecs knows each of them and no other", "[codec]") {
  const float_rows rows = mixed_rows(3, 60, 20);
  detail::builtin_codecs{}.for_each([&](const auto& codec) {
    const bytes section = codec_contract::encode(codec, rows);
    float_rows back{rows.count, rows.width};
    REQUIRE(detail::decode_builtin(codec, rows.shape(), section, rows.count, back.span()) ==
            detail::decode_outcome::decoded);
    REQUIRE(back.same_bits(round_trip(codec, rows)));
    REQUIRE(detail::decode_builtin(codec, rows.shape(), std::span(section).first(70), rows.count,
                                   back.span()) == detail::decode_outcome::malformed);
  });
  for (const codec_choice choice : {codec_choice{0, 0}, {2, 5}, {4, 5}, {7, 4}, {0x8000, 4}})
    REQUIRE(detail::decode_builtin(choice, rows.shape(), {}, 0, {}) == detail::decode_outcome::unknown);
  REQUIRE(detail::decode_builtin({2, 4}, {element_type::int32, 4, 8}, {}, 0, {}) ==
          detail::decode_outcome::malformed);
}

TEST_CASE("A codec_set finds its codecs by id and bits", "[codec]") {
  const codec_set set(greedy_4{greedy{7, 0.25f}}, uniform<8>{}, exact{});
  STATIC_REQUIRE(decltype(set)::size == 3);
  STATIC_REQUIRE(decltype(set)::first() == codec_choice(4, 4));
  STATIC_REQUIRE(decltype(set)::contains({1, 0}));
  STATIC_REQUIRE_FALSE(decltype(set)::contains({4, 3}));
  int bins = 0, calls = 0;
  REQUIRE(set.visit({4, 4}, [&](const auto& codec) {
    ++calls;
    if constexpr (requires { codec.search; }) bins = codec.search.bins;
  }));
  REQUIRE(bins == 7);
  REQUIRE(calls == 1);
  REQUIRE_FALSE(set.visit({4, 2}, [&](const auto&) { ++calls; }));
  REQUIRE(calls == 1);
  std::vector<codec_choice> seen;
  set.for_each([&](const auto& codec) { seen.emplace_back(codec); });
  REQUIRE(seen == std::vector<codec_choice>{{4, 4}, {2, 8}, {1, 0}});
  STATIC_REQUIRE(std::is_default_constructible_v<check_n_run_codecs>);
}
