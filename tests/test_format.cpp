// The format on disk: row ids, manifests, segments, untrusted bytes in all of them, and golden checkpoints.
#include <algorithm>
#include <checkrow/checkrow.hpp>
#include <checkrow/detail/blobs.hpp>
#include <checkrow/format/segment.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "catch_shim.hpp"
#include "row_kinds.hpp"

using namespace checkrow;
using format::index_kind;
using json = nlohmann::json;

namespace {

using ids_type = std::vector<std::uint64_t>;
using bytes_type = std::vector<std::byte>;

// ------------------------------------------------------------------------------------------------- row ids

/// Reads row ids bit by bit as the format says. Shares no code with the library.
class naive_ids {
 public:
  naive_ids(index_kind kind, const bytes_type& bytes, std::uint64_t first, std::size_t rows) : bytes_(bytes) {
    if (kind == index_kind::bitmap)
      for (std::size_t i = 0; i < 8 * bytes.size(); ++i)
        if (bit(i)) ids.push_back(first + i);
    if (kind == index_kind::gaps) {
      start(1, (rows - 1) * byte(0));
      ids.push_back(first);
      while (ids.size() < rows) ids.push_back(ids.back() + 1 + value(byte(0)));
    }
    if (kind == index_kind::runs) {
      const std::size_t runs = byte(2) + 256 * byte(3) + 65536 * byte(4) + 16777216 * byte(5);
      start(6, runs * byte(0) + (runs - 1) * byte(1));
      for (std::size_t run = 0; run < runs; ++run) {
        std::uint64_t id = run == 0 ? first : ids.back() + 2 + value(byte(1));
        for (std::uint64_t length = value(byte(0)) + 1; length > 0; --length) ids.push_back(id++);
      }
    }
  }
  ids_type ids;

 private:
  [[nodiscard]] std::size_t byte(std::size_t i) const { return std::to_integer<std::size_t>(bytes_.at(i)); }
  [[nodiscard]] bool bit(std::size_t i) const { return (byte(i / 8) >> i % 8 & 1) != 0; }
  void start(std::size_t at, std::size_t lower_bits) {
    upper_ = 8 * at;
    lower_ = 8 * (bytes_.size() - (lower_bits + 7) / 8);
  }
  std::uint64_t value(std::size_t k) {
    std::uint64_t upper = 0, lower = 0;
    while (!bit(upper_++)) ++upper;
    for (std::size_t i = 0; i < k; ++i) lower |= std::uint64_t{bit(lower_++)} << i;
    return upper << k | lower;
  }
  const bytes_type& bytes_;
  std::size_t upper_ = 0, lower_ = 0;
};

/// The bytes that Rice codes of these values need at best, by trying every k.
std::size_t least_rice_bits(const ids_type& values, unsigned& k) {
  std::size_t least = ~std::size_t{0};
  for (unsigned tried = 0; tried <= 32; ++tried) {
    std::size_t bits = 0;
    for (const std::uint64_t value : values) bits += (value >> tried) + 1 + tried;
    if (bits < least) least = bits, k = tried;
  }
  return least;
}

/// Writes as planned and reads back, by the library and naively.
void check_plan(const format::index_plan& plan, const ids_type& ids) {
  bytes_type bytes(plan.bytes + 8, std::byte{0xaa});
  format::write_index(plan, ids, bytes.data());
  for (std::size_t i = plan.bytes; i < bytes.size(); ++i) REQUIRE(bytes[i] == std::byte{0xaa});
  bytes.resize(plan.bytes);
  bytes.shrink_to_fit();
  ids_type back{7};
  REQUIRE(format::read_index(plan.kind, bytes, ids.front(), ids.back(), ids.size(), back));
  if (plan.kind == index_kind::range) {
    REQUIRE(back.empty());
  } else {
    REQUIRE(back == ids);
    REQUIRE(naive_ids(plan.kind, bytes, ids.front(), ids.size()).ids == ids);
  }
}

/// Plans, writes and reads back, in the other ways as well; returns the plan.
format::index_plan check_index(const ids_type& ids) {
  const format::index_plan plan = format::plan_index(ids);
  check_plan(plan, ids);
  if (ids.back() - ids.front() == ids.size() - 1) return plan;
  ids_type gaps, lengths{0}, run_gaps;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    gaps.push_back(ids[i] - ids[i - 1] - 1);
    if (gaps.back() == 0) {
      ++lengths.back();
    } else {
      run_gaps.push_back(gaps.back() - 1);
      lengths.push_back(0);
    }
  }
  unsigned k = 0;
  const format::index_plan in_gaps = format::detail::plan_gaps(ids);
  REQUIRE(in_gaps.bytes <= 2 + (least_rice_bits(gaps, k) + 7) / 8);
  check_plan(in_gaps, ids);
  const format::index_plan in_runs = format::detail::plan_runs(ids, lengths.size());
  const std::size_t run_bits = least_rice_bits(lengths, k) + least_rice_bits(run_gaps, k);
  REQUIRE(in_runs.bytes <= 7 + (run_bits + 7) / 8);
  check_plan(in_runs, ids);
  if (ids.back() - ids.front() < 100000)
    check_plan({index_kind::bitmap, format::bitmap_index_bytes(ids.front(), ids.back())}, ids);
  REQUIRE(plan.bytes <= std::min(in_gaps.bytes, format::bitmap_index_bytes(ids.front(), ids.back())));
  if (lengths.size() * 7 <= ids.size() * 5) REQUIRE(plan.bytes <= in_runs.bytes);
  return plan;
}

bool readable(index_kind kind, const bytes_type& bytes, std::uint64_t first, std::uint64_t last,
              std::uint64_t rows) {
  ids_type ids;
  return format::read_index(kind, bytes, first, last, rows, ids);
}

template <class T>
bytes_type bytes_of(std::initializer_list<T> values) {
  bytes_type out(values.size() * sizeof(T));
  std::memcpy(out.data(), std::data(values), out.size());
  return out;
}

constexpr std::uint64_t greatest = ~std::uint64_t{0};

}  // namespace

TEST_CASE("row ids are written in the smallest of four encodings and read back") {
  CHECK(check_index({5}).kind == index_kind::range);
  CHECK(check_index({greatest}).kind == index_kind::range);
  CHECK(check_index({3, 4, 5, 6}).kind == index_kind::range);
  CHECK(check_index({greatest - 1, greatest}).bytes == 0);

  CHECK(check_index({0, 2}).kind == index_kind::bitmap);
  CHECK(check_index({0, 2, 7}).bytes == 1);
  CHECK(check_index({100, 102, 103, 104, 108}).bytes == 2);
  CHECK(check_index({greatest - 15, greatest - 5, greatest}).kind == index_kind::bitmap);

  CHECK(check_index({1, 1000, 100000}).kind == index_kind::gaps);
  CHECK(check_index({7, 7 + 0xffffffffULL}).bytes == 6);
  CHECK(check_index({greatest - 0x100000000ULL, greatest}).kind == index_kind::gaps);

  ids_type runs(1000);
  std::iota(runs.begin(), runs.end(), 70);
  for (std::uint64_t id = 5000; id < 9000; ++id)
    if (id % 64 < 30) runs.push_back(id);
  CHECK(check_index(runs).kind == index_kind::runs);

  row_kinds::random_source random{1};
  for (int turn = 0; turn < 600; ++turn) {
    ids_type ids{random.below(1000)};
    const std::uint64_t spread = 1 + random.below(std::uint64_t{1} << random.below(turn % 3 == 0 ? 20 : 5));
    const std::uint64_t run = 1 + random.below(turn % 2 == 0 ? 1 : 40);
    for (std::uint64_t n = random.below(800); n > 0; --n)
      ids.push_back(ids.back() + 1 + (random.below(run) == 0 ? random.below(spread) : 0));
    (void)check_index(ids);
  }
}

TEST_CASE("row ids take few bytes more than their entropy") {
  row_kinds::random_source random{2};
  for (const double dirty : {0.5, 0.25, 0.1, 0.02, 0.001}) {
    const double entropy = -(std::log2(dirty) + (1 - dirty) / dirty * std::log2(1 - dirty)) / 8;
    constexpr std::size_t rows = 1 << 16;
    ids_type ids;
    for (std::uint64_t id = 0; ids.size() < rows; ++id)
      if (static_cast<double>(random.next() >> 11) * 0x1p-53 < dirty) ids.push_back(id);
    const double bytes = static_cast<double>(check_index(ids).bytes) / rows;
    std::printf("figure: row ids, %g %% dirty: %.4f bytes a row, %.4f of the entropy\n", 100 * dirty, bytes,
                bytes / entropy);
    CHECK(bytes < 1.03 * entropy);
  }
}

TEST_CASE("row ids from untrusted bytes are refused where they are anything else") {
  using u8 = std::uint8_t;
  constexpr index_kind unknown{4};
  for (const index_kind kind :
       {index_kind::range, index_kind::bitmap, index_kind::gaps, index_kind::runs, unknown}) {
    CHECK_FALSE(readable(kind, {}, 0, 0, 0));         // no rows
    CHECK_FALSE(readable(kind, {}, 5, 4, 1));         // last before first
    CHECK_FALSE(readable(kind, {}, 0, 3, 5));         // more rows than ids
    CHECK_FALSE(readable(kind, {}, 0, 9, greatest));  // far more
    CHECK_FALSE(readable(kind, {}, 0, greatest, 2));  // no bytes for them
  }
  CHECK(readable(index_kind::range, {}, 3, 5, 3));
  CHECK_FALSE(readable(index_kind::range, {}, 3, 5, 2));
  CHECK_FALSE(readable(index_kind::range, bytes_of<u8>({1}), 3, 5, 3));
  CHECK_FALSE(readable(unknown, {}, 3, 5, 3));

  // Gaps of 1 and 9 are values 0 and 8, by k = 2: upper parts 1 and 001, lower ones 00 and 00.
  CHECK(readable(index_kind::gaps, bytes_of<u8>({2, 0b1001, 0}), 0, 10, 3));
  CHECK_FALSE(readable(index_kind::gaps, bytes_of<u8>({2, 0b1001, 0b0001}), 0, 10, 3));  // ends elsewhere
  CHECK_FALSE(readable(index_kind::gaps, bytes_of<u8>({2, 0b10001, 0}), 0, 10, 3));
  CHECK_FALSE(readable(index_kind::gaps, bytes_of<u8>({2, 0b1001, 0b10000}), 0, 10, 3));  // an unused bit
  CHECK_FALSE(readable(index_kind::gaps, bytes_of<u8>({2, 0b1001, 0, 0}), 0, 10, 3));     // an unused byte
  CHECK_FALSE(readable(index_kind::gaps, bytes_of<u8>({2, 0b11001, 0}), 0, 10, 3));       // a gap too many
  CHECK_FALSE(readable(index_kind::gaps, bytes_of<u8>({2, 0b1000, 0}), 0, 10, 3));        // one too few
  CHECK_FALSE(readable(index_kind::gaps, bytes_of<u8>({2, 0b1001}), 0, 10, 3));           // no lower parts
  CHECK_FALSE(readable(index_kind::gaps, bytes_of<u8>({33, 0b11, 0, 0, 0, 0, 0, 0, 0, 0, 0}), 0, 10, 3));
  CHECK_FALSE(readable(index_kind::gaps, bytes_of<u8>({32, 1, 0, 0, 0, 0}), greatest, 0, 2));
  CHECK(readable(index_kind::gaps, bytes_of<u8>({32, 1, 2, 0, 0, 0}), greatest - 3, greatest, 2));
  CHECK_FALSE(
      readable(index_kind::gaps, bytes_of<u8>({32, 1, 3, 0, 0, 0}), greatest - 3, greatest, 2));  // wraps
  CHECK_FALSE(readable(index_kind::gaps, bytes_of<u8>({2, 0b1001, 0}), 0, greatest, std::uint64_t{1} << 62));

  // Runs of 3 and 2 with 4 between them: lengths 2 and 1, a gap of 3; k of lengths 1, of gaps 0:
  // upper parts 01, 0001, 1; lower ones 0, none, 1.
  CHECK(readable(index_kind::runs, bytes_of<u8>({1, 0, 2, 0, 0, 0, 0b1100010, 0b10}), 10, 18, 5));
  CHECK_FALSE(readable(index_kind::runs, bytes_of<u8>({1, 0, 2, 0, 0, 0, 0b1100010, 0b11}), 10, 18, 5));
  CHECK_FALSE(readable(index_kind::runs, bytes_of<u8>({1, 0, 2, 0, 0, 0, 0b1100010, 0b00}), 10, 18, 5));
  CHECK_FALSE(readable(index_kind::runs, bytes_of<u8>({1, 0, 2, 0, 0, 0, 0b1100010, 0b110}), 10, 18, 5));
  CHECK_FALSE(readable(index_kind::runs, bytes_of<u8>({1, 0, 2, 0, 0, 0, 0b11100010, 0b10}), 10, 18, 5));
  CHECK_FALSE(readable(index_kind::runs, bytes_of<u8>({1, 0, 2, 0, 0, 0, 0b1100010, 0, 0b10}), 10, 18, 5));
  CHECK_FALSE(readable(index_kind::runs, bytes_of<u8>({1, 0, 2, 0, 0, 0, 0b0100010, 0b10}), 10, 18, 5));
  CHECK_FALSE(readable(index_kind::runs, bytes_of<u8>({1, 0, 2, 0, 0, 0, 0b1010010, 0b10}), 10, 18, 5));
  CHECK_FALSE(readable(index_kind::runs, bytes_of<u8>({1, 0, 0, 0, 0, 0, 0b1100010, 0b10}), 10, 18, 5));
  CHECK_FALSE(
      readable(index_kind::runs, bytes_of<u8>({1, 0, 255, 255, 255, 255, 0b1100010, 0b10}), 10, 18, 5));
  CHECK_FALSE(readable(index_kind::runs, bytes_of<u8>({1, 0, 2, 0, 0}), 10, 18, 5));
  CHECK_FALSE(readable(index_kind::runs, bytes_of<u8>({33, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0}), 10, 18, 9));
  CHECK(readable(index_kind::runs, bytes_of<u8>({32, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0}), 10, 18, 9));
  // Few bytes for so many ids that they would take gigabytes.
  CHECK(readable(index_kind::runs, bytes_of<u8>({32, 0, 1, 0, 0, 0, 1, 255, 255, 15, 0}), 0, 0xfffff,
                 0x100000));
  CHECK_FALSE(readable(index_kind::runs, bytes_of<u8>({32, 0, 1, 0, 0, 0, 1, 255, 255, 255, 255}), 0,
                       0xffffffff, 1ULL << 32));

  CHECK(readable(index_kind::bitmap, bytes_of<u8>({0b10101}), 8, 12, 3));
  CHECK_FALSE(readable(index_kind::bitmap, bytes_of<u8>({0b10100}), 8, 12, 3));     // lacks the first
  CHECK_FALSE(readable(index_kind::bitmap, bytes_of<u8>({0b01011}), 8, 12, 3));     // lacks the last
  CHECK_FALSE(readable(index_kind::bitmap, bytes_of<u8>({0b110101}), 8, 12, 4));    // one behind the last
  CHECK_FALSE(readable(index_kind::bitmap, bytes_of<u8>({0b11101}), 8, 12, 3));     // a row too many
  CHECK_FALSE(readable(index_kind::bitmap, bytes_of<u8>({0b10001}), 8, 12, 3));     // one too few
  CHECK_FALSE(readable(index_kind::bitmap, bytes_of<u8>({0b10101, 0}), 8, 12, 3));  // a byte too many
  CHECK_FALSE(readable(index_kind::bitmap, bytes_of<u8>({0b10101}), 8, 16, 3));     // a byte too few
  CHECK_FALSE(readable(index_kind::bitmap, bytes_of<u8>({0xff}), greatest - 3, greatest, 4));
}

TEST_CASE("row ids from any bytes are ascending, or refused") {
  row_kinds::random_source random{3};
  std::size_t accepted = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    ids_type ids{random.below(100)};
    for (std::uint64_t n = 2 + random.below(300); n > 0; --n)
      ids.push_back(ids.back() + 1 + (random.below(3) == 0 ? random.below(20) : 0));
    const format::index_plan plan = turn % 2 == 0 ? format::detail::plan_gaps(ids) : format::plan_index(ids);
    if (plan.bytes == 0) continue;
    bytes_type bytes(plan.bytes);
    format::write_index(plan, ids, bytes.data());
    for (std::uint64_t flips = 1 + random.below(3); flips > 0; --flips)
      bytes[random.below(turn % 5 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 8))] ^=
          std::byte(1u << random.below(8));
    if (turn % 7 == 0) bytes.resize(random.below(bytes.size()));
    bytes.shrink_to_fit();
    ids_type back;
    if (!format::read_index(plan.kind, bytes, ids.front(), ids.back(), ids.size(), back)) continue;
    ++accepted;
    REQUIRE(back.size() == ids.size());
    REQUIRE((back.front() == ids.front() && back.back() == ids.back()));
    REQUIRE(std::adjacent_find(back.begin(), back.end(), std::greater_equal<>()) == back.end());
  }
  CHECK(accepted > 0);
}

// ------------------------------------------------------------------------------------------------ manifest

namespace {

format::manifest some_manifest() {
  format::manifest of;
  of.sequence = 12;
  of.parent = 11;
  of.attempt = {1, 2, 3, 0xff};
  of.step = 1000;
  of.created = 1700000000;
  of.strategy = "intermittent";
  of.codecs = {{{4, 2}, "adaptive greedy", 1}, {{0x8001, 5}, "mine", 3}};
  of.tables = {
      {"items", greatest, {4, 2}, {{"weights", {element_type::float32, 4, 64}}}},
      {"users", 5, {1, 0}, {{"weights", {element_type::int64, 8, 1}}, {"z", {element_type{200}, 3, 2}}}}};
  of.dense = {{"bias \"quoted\"\\", element_type::float16, 2, 10}};
  of.states = {{"the optimizer's", 0}};
  of.parts = {{3, {{0, 1, 2, 3, 4, 5}}}};
  of.segments = {{"000000000011-a-p0000.segment", 3, 11, {9}, 100, 0x0123456789abcdef, 7, true}};
  of.deltas = 1;
  of.share_sum = 0.1;
  of.last_share = 1.0 / 3.0;
  of.restores = 2;
  of.user = {{"a key", "ä value"}, {"", ""}};
  return of;
}

std::string with_checksum(std::string text) {
  REQUIRE(text.back() == '}');
  text.pop_back();
  return text + format::detail::checksum_of(text);
}

json json_of(const format::manifest& of) {
  json out = json::parse(format::write_manifest(of));
  out.erase("checksum");
  return out;
}

result<format::manifest> read_json(const json& from) {
  return format::read_manifest(with_checksum(from.dump()), "m");
}

bool is_corrupt(const result<format::manifest>& read) {
  return !read && read.error().kind == error_kind::corrupt && read.error().where == "m";
}

/// Paths of all members of all objects.
void list_members(const json& from, const json::json_pointer& at, std::vector<json::json_pointer>& out) {
  if (from.is_object())
    for (const auto& [key, value] : from.items()) {
      out.push_back(at / key);
      list_members(value, at / key, out);
    }
  if (from.is_array())
    for (std::size_t i = 0; i < from.size(); ++i) list_members(from[i], at / i, out);
}

/// Members that say nothing a reader has to know.
bool is_for_others(const json::json_pointer& member) {
  const std::string text = member.to_string();
  return text == "/provisional" || text == "/compatible_features" || text.ends_with("/initializer") ||
         text.ends_with("/element/name");
}

std::string type_of(const json& value) { return value.is_number_unsigned() ? "unsigned" : value.type_name(); }

}  // namespace

TEST_CASE("a manifest is the line that nlohmann/json makes of it, members in order of name") {
  const std::string text = format::write_manifest(some_manifest());
  const std::string line = json_of(some_manifest()).dump();
  CHECK(text == with_checksum(line));
}

TEST_CASE("a manifest is read as it was written") {
  const format::manifest of = some_manifest();
  const std::string text = format::write_manifest(of);
  const auto back = format::read_manifest(text, "m");
  REQUIRE(back);
  CHECK(format::write_manifest(*back) == text);
  CHECK(back->tables[0].rows == greatest);
  CHECK(back->tables[1].columns == of.tables[1].columns);
  CHECK(back->dense == of.dense);
  CHECK(back->share_sum == of.share_sum);
  CHECK(back->last_share == of.last_share);
  CHECK(back->user == of.user);
  CHECK(back->segments[0].footer_hash == of.segments[0].footer_hash);
  CHECK(back->attempt == of.attempt);
  CHECK(back->parts[0].tables[0].columns == 5);

  CHECK(text.find("\"provisional\":false") != text.npos);
  CHECK(text.find('\n') == text.size() - 1);
  const format::manifest empty;
  CHECK(format::read_manifest(format::write_manifest(empty), "m"));
}

TEST_CASE("text that is not UTF-8 still makes a manifest") {
  format::manifest of = some_manifest();
  of.user = {{"key", "\xff\xfe"}};
  CHECK(format::read_manifest(format::write_manifest(of), "m"));
}

TEST_CASE("a manifest that lacks a member, or has one of another type, is corrupt") {
  const json whole = json_of(some_manifest());
  std::vector<json::json_pointer> members;
  list_members(whole, json::json_pointer(), members);
  REQUIRE(members.size() > 80);
  for (const json::json_pointer& member : members) {
    INFO(member.to_string());
    json lacking = whole;
    lacking[member.parent_pointer()].erase(member.back());
    if (is_for_others(member)) {
      CHECK(read_json(lacking));
      continue;
    }
    const auto read = read_json(lacking);
    CHECK(is_corrupt(read));
    CHECK(read.error().what.find('"' + member.back() + '"') != std::string::npos);

    for (const json& other : {json(nullptr), json(true), json(-1), json(0.5), json("text"), json(7u),
                              json::array(), json::object()}) {
      const bool both_numbers = other.is_number() && whole[member].is_number_float();
      if (type_of(other) == type_of(whole[member]) || both_numbers) continue;
      INFO(other.dump());
      json changed = whole;
      changed[member] = other;
      CHECK(is_corrupt(read_json(changed)));
    }
    if (whole[member].is_array() && member.back() != "incompatible_features") {
      json changed = whole;
      changed[member].push_back(1);
      CHECK(is_corrupt(read_json(changed)));
    }
  }
}

TEST_CASE("a manifest's numbers and hex digits have to fit") {
  const json whole = json_of(some_manifest());
  const auto refused = [&](const char* member, const json& value) {
    json changed = whole;
    changed[json::json_pointer(member)] = value;
    return is_corrupt(read_json(changed));
  };
  CHECK(refused("/format", "rowcheck"));
  CHECK(refused("/tables/0/codec/id", 65536));
  CHECK(refused("/tables/0/codec/bits", 256));
  CHECK(refused("/tables/0/columns/0/width", 4294967296));
  CHECK(refused("/tables/0/columns/0/element/code", 256));
  CHECK(refused("/sequence", 18446744073709551616.0));
  CHECK(refused("/attempt", std::string(31, '0')));
  CHECK(refused("/attempt", std::string(32, 'A')));
  CHECK(refused("/attempt", std::string(33, '0')));
  CHECK(refused("/segments/0/footer_hash", "0123456789abcdeg"));
  CHECK(refused("/segments/0/footer_hash", "123456789abcdef"));
}

TEST_CASE("what a manifest needs and this version does not know is refused by name") {
  json changed = json_of(some_manifest());
  changed["incompatible_features"] = {"rows on the moon", "more"};
  auto read = read_json(changed);
  REQUIRE_FALSE(read);
  CHECK(read.error().kind == error_kind::unsupported);
  CHECK(read.error().what.find("rows on the moon") != std::string::npos);

  changed["sequence"] = "another type in that version";
  CHECK(read_json(changed).error().kind == error_kind::unsupported);

  changed = json_of(some_manifest());
  changed["parts"].push_back(changed["parts"][0]);
  CHECK(read_json(changed).error().kind == error_kind::unsupported);

  changed = json_of(some_manifest());
  changed["version"] = 2;
  read = read_json(changed);
  REQUIRE_FALSE(read);
  CHECK(read.error().kind == error_kind::unsupported);
  CHECK(read.error().what.find("version 2") != std::string::npos);
}

TEST_CASE("members and compatible features that nobody knows are ignored") {
  json changed = json_of(some_manifest());
  changed["compatible_features"] = {"something nice"};
  std::vector<json::json_pointer> members;
  list_members(changed, json::json_pointer(), members);
  for (const json::json_pointer& member : members)
    if (changed[member.parent_pointer()].is_object())
      changed[member.parent_pointer()]["zz unknown"] = {{"deep", {1, 2, nullptr}}};
  const auto read = read_json(changed);
  REQUIRE(read);
  CHECK(format::write_manifest(*read) == format::write_manifest(some_manifest()));
}

TEST_CASE("a manifest that was truncated, flipped or extended is corrupt") {
  const std::string whole = format::write_manifest(some_manifest());
  for (std::size_t size = 0; size < whole.size(); ++size)
    if (!is_corrupt(format::read_manifest(whole.substr(0, size), "m"))) FAIL("truncated to " << size);
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int flip : {1, 0x20, 0x80, 0xff}) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ flip);
      if (!is_corrupt(format::read_manifest(flipped, "m"))) FAIL("flipped at " << at);
    }
  CHECK(is_corrupt(format::read_manifest(whole + "\n", "m")));
  CHECK(is_corrupt(format::read_manifest(" " + whole, "m")));
}

TEST_CASE("what is no manifest is corrupt even with a good checksum") {
  const auto refused = [](const std::string& body) {
    return is_corrupt(format::read_manifest(body + format::detail::checksum_of(body), "m"));
  };
  for (const char* body : {"", "{", "[]", "[", "null", "{{", "\"text\"", "{\"format\":\"checkrow\"",
                           "{\"format\":", "\xff", "{\"a\":1,", "{\"a\":1e999", "{}{"})
    CHECK(refused(body));
  using namespace std::string_literals;
  CHECK(refused("{\"format\":\"checkrow\",\"version\":1}\0 more,\""s));  // a zero byte ends nothing
  const std::string deep(100000, '[');
  CHECK(refused(deep));
  CHECK(refused("{\"a\":" + deep));
  CHECK(refused("{\"a\":" + deep + std::string(100000, ']')));
}

TEST_CASE("blob names are read as they are written, and other names are not of this format") {
  const std::string attempt = "00112233445566778899aabbccddeeff";
  format::blob_name name;
  REQUIRE(format::parse_blob_name(format::manifest_name(7, attempt), name));
  CHECK((name.sequence == 7 && name.attempt == attempt && name.is_manifest));
  REQUIRE(format::parse_blob_name(format::segment_name(1234567890123456, attempt, 12345), name));
  CHECK((name.sequence == 1234567890123456 && name.part == 12345 && !name.is_manifest));
  for (const std::string& other :
       {std::string(), attempt, "000000000001-" + attempt, "000000000001-" + attempt + ".manifest.partial",
        "-" + attempt + ".manifest", "000000000001-" + attempt.substr(1) + ".manifest",
        "000000000001-" + attempt + "-p.segment", "000000000001-" + attempt + "-p4294967296.segment",
        "000000000001-" + attempt + "-p0000.segments", "000000000001-" + std::string(32, 'G') + ".manifest",
        std::string("part-0.lock")})
    CHECK_FALSE(format::parse_blob_name(other, name));
}

// ------------------------------------------------------------------------------------------------- segments

namespace {

using float_list = std::vector<float>;

/// A table whose rows are of all classes, a dense parameter and a state.
struct small_model {
  explicit small_model(const memory& sink, float fill = 0)
      : weights(15, fill),
        adagrad(5, fill),
        bias(3, fill),
        state(std::uint64_t(fill)),
        ckpt{uniform<4>{}, one_shot{}, sink} {
    ckpt.dense("bias", bias);
    ckpt.state("step", state);
  }

  void train() {
    weights = {0.5f, -0.25f, 0.125f, 0, 0, 0, 1000.001f, 999.999f, 1000, 1, 2, 3, INFINITY, -1, 1e-40f};
    adagrad = {1, 2, 3, 4, 5};
    bias = {7, 8, 9};
    state = 77;
  }

  [[nodiscard]] bool operator==(const small_model& other) const {
    return std::memcmp(weights.data(), other.weights.data(), weights.size() * 4) == 0 &&
           adagrad == other.adagrad && bias == other.bias && state == other.state;
  }

  float_list weights, adagrad, bias;
  std::uint64_t state;
  checkpointer<policies<uniform<4>, one_shot, memory>> ckpt;
  decltype(ckpt)::table_type table = ckpt.table("users", weights, 3, {.columns = {{"adagrad", adagrad}}});
};

bytes_type blob_of(const memory& sink, const std::string& name) { return *sink.find(name); }

std::vector<std::string> names_of(const memory& sink, std::string_view suffix) {
  std::vector<std::string> out;
  for (const blob& one : *sink.list())
    if (one.name.ends_with(suffix)) out.push_back(one.name);
  return out;
}

/// One full checkpoint, and access to its bytes.
struct saved_checkpoint {
  saved_checkpoint() {
    small_model model(sink);
    model.train();
    model.ckpt.save(1);
    model.ckpt.finish();
    segment_name = names_of(sink, ".segment").at(0);
    manifest_name = names_of(sink, ".manifest").at(0);
    segment = blob_of(sink, segment_name);
    const bytes_type text = blob_of(sink, manifest_name);
    manifest = *format::read_manifest({reinterpret_cast<const char*>(text.data()), text.size()}, "m");
    const auto place = *format::read_trailer(std::span(segment).last(format::trailer_bytes), segment.size());
    footer_at = place.offset;
    REQUIRE(format::read_footer(std::span(segment).subspan(place.offset, place.bytes), manifest.attempt,
                                place.offset, entries) == nullptr);
  }

  /// Restores into a model of ones, which must stay as it is unless that works.
  [[nodiscard]] result<std::optional<restored>> restore() {
    small_model model(sink, 1);
    auto found = model.ckpt.try_restore({.verify_first = true});
    if (!found || !*found) REQUIRE(model == small_model(memory(), 1));
    return found;
  }

  /// Puts the segment there with every hash made right again, up to the manifest's.
  void put_rehashed(bytes_type bytes) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const format::footer_entry& entry = entries[i];
      const auto chunk = std::span(bytes).subspan(entry.offset, entry.bytes);
      const auto head = chunk.first(entry.head_bytes);
      std::byte* const listed =
          bytes.data() + footer_at + format::footer_header_bytes + i * format::footer_entry_bytes;
      const std::uint64_t payload_hash = format::hash(chunk.subspan(entry.head_bytes));
      format::store(head.data() + format::chunk_at::payload_hash, payload_hash);
      const std::uint64_t head_hash = format::hash_head(head);
      format::store(head.data() + format::chunk_at::head_hash, head_hash);
      format::store(listed + 64, head_hash);
      format::store(listed + 72, payload_hash);
    }
    const std::size_t trailer_at = bytes.size() - format::trailer_bytes;
    format::manifest changed = manifest;
    changed.segments[0].footer_hash =
        format::hash(std::span(bytes).subspan(footer_at, trailer_at - footer_at));
    format::store(bytes.data() + trailer_at + 16, changed.segments[0].footer_hash);
    sink.put(segment_name, std::move(bytes));
    put_text(manifest_name, format::write_manifest(changed));
  }
  void put_text(const std::string& name, const std::string& text) {
    const auto from = std::as_bytes(std::span(text));
    sink.put(name, {from.begin(), from.end()});
  }

  memory sink;
  std::string segment_name, manifest_name;
  bytes_type segment;
  format::manifest manifest;
  std::uint64_t footer_at = 0;
  std::vector<format::footer_entry> entries;
};

}  // namespace

TEST_CASE("every byte of a segment counts") {
  saved_checkpoint saved;
  REQUIRE(saved.segment.size() < 2000);
  for (std::size_t at = 0; at < saved.segment.size(); ++at) {
    bytes_type flipped = saved.segment;
    flipped[at] ^= std::byte(1u << (at % 8));
    saved.sink.put(saved.segment_name, std::move(flipped));
    const auto found = saved.restore();
    if (found || found.error().kind != error_kind::corrupt) FAIL("flipped at " << at);
    if (found.error().where.find(saved.segment_name) == std::string::npos) FAIL(found.error().text());
  }
  saved.sink.put(saved.segment_name, saved.segment);
  CHECK(saved.restore());
}

TEST_CASE("a segment of a later version is read, which has more fields where they may be added") {
  saved_checkpoint saved;
  const auto put = [](bytes_type& to, std::span<const std::byte> from, std::size_t at_least) {
    to.insert(to.end(), from.begin(), from.end());
    to.resize(std::max(to.size(), at_least), std::byte{0xee});
  };
  constexpr std::uint16_t header = 200, footer_header = 72, footer_entry = 96;
  constexpr std::uint8_t descriptor = 40;
  bytes_type out(saved.segment.begin(), saved.segment.begin() + format::segment_header_bytes), footer;
  put(footer, std::span(saved.segment).subspan(saved.footer_at, format::footer_header_bytes), footer_header);
  for (std::size_t i = 0; i < saved.entries.size(); ++i) {
    const format::footer_entry& entry = saved.entries[i];
    const auto old = std::span(saved.segment).subspan(entry.offset, entry.bytes);
    const auto columns = format::load<std::uint16_t>(old.data() + format::chunk_at::columns);
    bytes_type head;
    put(head, old.first(format::chunk_header_bytes), header);
    for (std::size_t c = 0; c < columns; ++c)
      put(head, old.subspan(format::chunk_header_bytes + c * format::chunk_column_bytes, 32),
          header + (c + 1) * descriptor);
    head.resize(format::aligned(head.size()));
    const std::size_t ids_at =
        format::aligned(format::chunk_header_bytes + columns * format::chunk_column_bytes);
    put(head, old.subspan(ids_at, entry.head_bytes - ids_at), 0);
    format::store(head.data() + format::chunk_at::header_bytes, header);
    format::store(head.data() + format::chunk_at::column_bytes, descriptor);
    format::store(head.data() + format::chunk_at::position, std::uint64_t{out.size()});
    const std::uint64_t head_hash = format::hash_head(head);
    format::store(head.data() + format::chunk_at::head_hash, head_hash);
    const std::size_t listed = footer.size();
    put(footer,
        std::span(saved.segment)
            .subspan(saved.footer_at + format::footer_header_bytes + i * format::footer_entry_bytes,
                     format::footer_entry_bytes),
        listed + footer_entry);
    const std::uint64_t numbers[] = {out.size(), head.size() + entry.bytes - entry.head_bytes, head.size(),
                                     head_hash};
    std::memcpy(footer.data() + listed + 40, numbers, sizeof numbers);
    put(out, head, 0);
    put(out, old.subspan(entry.head_bytes), 0);
  }
  format::store(footer.data() + 4, footer_header);
  format::store(footer.data() + 6, footer_entry);
  format::store(footer.data() + 40, std::uint64_t{out.size()});
  format::manifest changed = saved.manifest;
  changed.segments[0].footer_hash = format::hash(footer);
  const std::uint64_t trailer[] = {out.size(), footer.size(), changed.segments[0].footer_hash,
                                   format::segment_end_magic};
  put(out, footer, 0);
  put(out, std::as_bytes(std::span(trailer)), 0);
  changed.segments[0].bytes = out.size();
  saved.sink.put(saved.segment_name, out);
  saved.put_text(saved.manifest_name, format::write_manifest(changed));
  small_model model(saved.sink, 1), again(saved.sink, 1), expected(memory{});
  REQUIRE(model.ckpt.restore());
  saved.sink.put(saved.segment_name, saved.segment);
  saved.put_text(saved.manifest_name, format::write_manifest(saved.manifest));
  REQUIRE(again.ckpt.restore());
  CHECK(model == again);
  CHECK(!(model == expected));
}

TEST_CASE("a segment has to be as long as it was") {
  saved_checkpoint saved;
  for (std::size_t size = 0; size <= saved.segment.size() + 65; ++size) {
    bytes_type other = saved.segment;
    other.resize(size);
    saved.sink.put(saved.segment_name, std::move(other));
    const auto found = saved.restore();
    if (size == saved.segment.size())
      CHECK(found);
    else if (found || found.error().kind != error_kind::corrupt)
      FAIL("of " << size << " bytes");
  }
  // Where the manifest lies about the size as well.
  for (std::size_t size = 0; size < saved.segment.size(); ++size) {
    bytes_type other = saved.segment;
    other.resize(size);
    saved.sink.put(saved.segment_name, std::move(other));
    format::manifest changed = saved.manifest;
    changed.segments[0].bytes = size;
    saved.put_text(saved.manifest_name, format::write_manifest(changed));
    const auto found = saved.restore();
    if (found || found.error().kind != error_kind::corrupt)
      FAIL("of " << size << " bytes, says the manifest");
  }
  REQUIRE(saved.sink.remove(saved.segment_name));
  CHECK(saved.restore().error().kind == error_kind::not_found);
}

TEST_CASE("every byte of a manifest counts for a restore") {
  saved_checkpoint saved;
  const bytes_type whole = blob_of(saved.sink, saved.manifest_name);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    bytes_type flipped = whole;
    flipped[at] ^= std::byte{4};
    saved.sink.put(saved.manifest_name, std::move(flipped));
    const auto found = saved.restore();
    if (found || found.error().kind != error_kind::corrupt) FAIL("flipped at " << at);
  }
}

TEST_CASE("bytes with right hashes are not trusted either") {
  saved_checkpoint saved;
  saved.put_rehashed(saved.segment);
  REQUIRE(saved.restore());
  std::size_t refused = 0, taken = 0;
  for (std::size_t at = 0; at < saved.segment.size() - format::trailer_bytes; ++at)
    for (const int flip : {1, 0x7f, 0x80}) {
      bytes_type changed = saved.segment;
      changed[at] ^= std::byte(flip);
      saved.put_rehashed(std::move(changed));
      const auto found = saved.restore();
      ++(found ? taken : refused);
      if (!found && found.error().kind != error_kind::corrupt &&
          found.error().kind != error_kind::unsupported)
        FAIL("at " << at << ": " << found.error().text());
    }
  CHECK(refused > 1000);
  CHECK(taken > 100);  // other weights are as good as those
}

TEST_CASE("a head or footer with right hashes and one wrong number is refused") {
  saved_checkpoint saved;
  const std::uint64_t chunk = saved.entries[0].offset, entry = saved.footer_at + format::footer_header_bytes;
  const auto kind_of = [&](std::uint64_t at, auto value, std::uint64_t also_at = 0) {
    bytes_type changed = saved.segment;
    format::store(changed.data() + at, value);
    if (also_at != 0) format::store(changed.data() + also_at, value);
    saved.put_rehashed(std::move(changed));
    const auto found = saved.restore();
    if (found) return error_kind::io;  // it was not refused
    return found.error().kind;
  };
  const auto refused = [&](auto... changes) { return kind_of(changes...) == error_kind::corrupt; };
  // whole, but for another version: restore must not fall back in silence
  const auto unsupported = [&](auto... changes) { return kind_of(changes...) == error_kind::unsupported; };
  using u64 = std::uint64_t;
  namespace at = format::chunk_at;
  for (const u64 value : {u64{0}, u64{1}, u64{64}, u64{1} << 32, u64{1} << 63, greatest, greatest - 63}) {
    INFO(value);
    CHECK(refused(chunk + at::index_bytes, value == 0 ? 1 : value));
    CHECK(refused(chunk + at::payload_bytes, value));
    CHECK(refused(chunk + at::position, value == 64 ? 0 : value));
    CHECK(refused(chunk + at::rows, value, entry + 32));
    CHECK(refused(chunk + at::last, value, entry + 24));
    CHECK(refused(chunk + at::first, value == 0 ? 2 : value, entry + 16));
    CHECK(refused(chunk + 128 + 16, value == 0 ? 3 : value));  // the first section's offset
    CHECK(refused(chunk + 128 + 24, value));                   // its size
    CHECK(refused(entry + 40, value == 64 ? 0 : value));       // the chunk's offset
    CHECK(refused(entry + 48, value));                         // its size
    CHECK(refused(entry + 56, value));                         // its head's
    CHECK(refused(saved.footer_at + 8, value));                // number of entries
    CHECK(refused(saved.footer_at + 40, value));
    CHECK(refused(saved.segment.size() - 32, value));
    CHECK(refused(saved.segment.size() - 24, value));
  }
  CHECK(refused(chunk + at::table, std::uint32_t{1}, entry));
  CHECK(refused(chunk + at::columns, std::uint16_t{0}));
  CHECK(refused(chunk + at::columns, std::uint16_t{1}));
  CHECK(refused(chunk + at::columns, std::uint16_t{0xffff}));
  CHECK(unsupported(chunk + at::ids, std::uint8_t{1}));
  CHECK(unsupported(chunk + at::version, std::uint16_t{2}));
  CHECK(unsupported(chunk + at::kind, std::uint8_t{2}, entry + 4));
  CHECK(refused(chunk + at::kind, std::uint8_t{3}, entry + 4));
  CHECK(unsupported(chunk + at::kind, std::uint8_t{5}, entry + 4));
  CHECK(unsupported(chunk + at::incompatible, std::uint32_t{1}));
  CHECK(unsupported(chunk + at::index, std::uint8_t{4}));
  CHECK(kind_of(chunk + at::compatible, std::uint32_t{6}) == error_kind::io);  // read as ever
  CHECK(kind_of(saved.footer_at + 16, std::uint32_t{6}) == error_kind::io);
  CHECK(unsupported(chunk + at::flags, std::uint8_t{2}, entry + 5));
  CHECK(unsupported(chunk + at::flags, std::uint8_t{0x81}, entry + 5));
  CHECK(unsupported(saved.footer_at + 20, std::uint32_t{1}));
}

TEST_CASE("a damaged checkpoint is passed over, and one that was not verified first says so") {
  memory sink;
  small_model model(sink), first(memory{});
  model.train();
  model.ckpt.save(1);
  first.weights = model.weights;
  model.table.touch(std::vector<int>{1, 3});
  model.weights[4] = 44;
  model.bias = {1, 1, 1};
  model.ckpt.save(2);
  model.ckpt.finish();
  const std::string delta = names_of(sink, ".segment").at(1);
  const bytes_type whole = blob_of(sink, delta);
  for (std::size_t at = 0; at < whole.size(); at += 7)
    for (const bool verify_first : {true, false}) {
      bytes_type flipped = whole;
      flipped[at] ^= std::byte{0x40};
      sink.put(delta, std::move(flipped));
      small_model back(sink, 1);
      const auto found = back.ckpt.try_restore({.verify_first = verify_first});
      if (!found || !*found || (*found)->sequence != 1 || (*found)->passed_over.size() != 1)
        FAIL("flipped at " << at);
      if (back.bias != float_list{7, 8, 9} || back.weights[4] != 0) FAIL("not the older one: " << at);
    }
  sink.put(delta, whole);
  small_model back(sink, 1);
  REQUIRE(back.ckpt.restore()->sequence == 2);
  CHECK(std::abs(back.weights[4] - 44) < 1);

  // One that is whole but beyond this version is not passed over: older rows would come back unnoticed.
  const std::string newest = names_of(sink, ".manifest").at(1);
  const bytes_type known = blob_of(sink, newest);
  json changed = json::parse(std::string_view(reinterpret_cast<const char*>(known.data()), known.size()));
  changed.erase("checksum");
  changed["incompatible_features"] = {"rows on the moon"};
  const std::string unknown = with_checksum(changed.dump());
  const auto unknown_bytes = std::as_bytes(std::span(unknown));
  sink.put(newest, {unknown_bytes.begin(), unknown_bytes.end()});
  CHECK(small_model(sink).ckpt.try_restore().error().kind == error_kind::unsupported);

  saved_checkpoint lone;
  lone.segment[lone.entries[0].offset + lone.entries[0].bytes - 1] ^= std::byte{1};
  lone.sink.put(lone.segment_name, lone.segment);
  small_model undefined(lone.sink, 1);
  const auto found = undefined.ckpt.try_restore({.verify_first = false});
  REQUIRE_FALSE(found);
  CHECK(found.error().kind == error_kind::corrupt);
  CHECK(found.error().text().find("undefined") != std::string::npos);
}

// ------------------------------------------------------------------------------------------- golden
// checkpoints

namespace {

namespace fs = std::filesystem;
const fs::path tests_folder = CHECKROW_TESTS_DIR;
const fs::path golden_folder = tests_folder / "golden" / "format1";

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Everything that a folder of blobs holds, in memory.
memory load_blobs(const fs::path& folder) {
  memory sink;
  for (const auto& file : fs::directory_iterator(folder)) {
    const std::string content = read_file(file.path());
    const auto bytes = std::as_bytes(std::span(content));
    sink.put(file.path().filename().string(), {bytes.begin(), bytes.end()});
  }
  return sink;
}

using spans = std::map<std::string, std::span<std::byte>>;

/// A worked example: its blobs, and the values that it is said to hold.
struct worked_example {
  memory sink;
  std::map<std::string, float_list> values;
};

/// Reads the blocks of docs/format.md that begin with the name of a blob, or with "values". A manifest is
/// JSON whose line breaks and indents are not part of it; a segment is lines of "offset | bytes | meaning",
/// where "00 * 12" is 12 times that byte.
worked_example read_example() {
  worked_example out;
  std::istringstream document(read_file(tests_folder.parent_path() / "docs" / "format.md"));
  std::string block;
  bytes_type content;
  for (std::string line; std::getline(document, line);) {
    std::istringstream fields(line);
    format::blob_name parsed;
    if (block.empty()) {
      if (line == "values" || format::parse_blob_name(line, parsed)) block = line;
    } else if (line == "```") {
      if (block.ends_with(".manifest")) content.push_back(std::byte{'\n'});
      if (block != "values") out.sink.put(block, std::exchange(content, {}));
      block.clear();
    } else if (block == "values") {
      std::string name;
      fields >> name;
      for (float value = 0; fields >> value;) out.values[name].push_back(value);
    } else if (block.ends_with(".manifest")) {
      for (const char c : line.substr(std::min(line.find_first_not_of(' '), line.size())))
        content.push_back(std::byte(c));
    } else {
      std::size_t offset = 0, count = 0;
      std::string bar, byte;
      fields >> offset >> bar;
      REQUIRE(offset == content.size());
      while (fields >> byte && byte != "|")
        if (byte == "*" && fields >> count)
          content.resize(content.size() + count - 1, content.back());
        else
          content.push_back(std::byte(std::stoul(byte, nullptr, 16)));
    }
  }
  return out;
}

template <class Sink>
struct example_model {
  explicit example_model(Sink sink) : ckpt{uniform<4>{}, std::move(sink)} {
    ckpt.dense("bias", bias);
    table = ckpt.table("users", weights, 4, {.columns = {{"adagrad", adagrad}}});
  }

  void train() {  // a NARROW row, a zero row, and a WIDE one
    weights = {0.5f, -0.25f, 0.125f, 1, 0, 0, 0, 0, 1000, 1000.001f, 999.999f, 1000.0005f};
    adagrad = {0.5f, 1.5f, 2.5f};
    bias = {0.25f, -4};
  }

  float_list weights = float_list(12), adagrad = float_list(3), bias = float_list(2);
  checkpointer<policies<uniform<4>, Sink>> ckpt;
  std::optional<typename decltype(ckpt)::table_type> table;
};

using every_codec = detail::builtin_codecs;

/// A table for each codec, with a row of each kind; one of integers; one for each way to write row ids; one
/// whose rows are copied aside; a dense parameter; a state.
template <class Sink>
class golden_model {
 public:
  explicit golden_model(Sink sink)
      : checkpointer_{every_codec{}, one_shot{}, std::move(sink),
                      options{.metadata = {{"made", "by checkrow"}}}, observer{[this](const event& what) {
                        if (what.kind == event_kind::captured) touch_pending();
                      }}} {
    for (const codec_choice codec : every_codec::choices) {
      const std::string name = "codec" + std::to_string(codec.id) + "_" + std::to_string(codec.bits);
      auto& weights = floats_.emplace_back(rows * dim);
      tables_.push_back(checkpointer_.table(name, weights, dim, {.codec = codec}));
      spans_[name + ".weights"] = std::as_writable_bytes(std::span(weights));
      if (codec == codec_choice{two_bytes{}}) continue;  // float32 only
      add_small<half>(name + "_half", halves_, codec);
      add_small<bfloat16>(name + "_bfloat16", brains_, codec);
    }
    add_moments();
    tables_.push_back(checkpointer_.table(
        "integers", integers_, 2, {.columns = {{"seen", seen_}, {"flags", flags_}}, .codec = exact{}}));
    for (auto& [name, bytes] : bytes_) {
      byte_tables_.emplace(name, checkpointer_.table(name, bytes, 1, {.codec = exact{}}));
      spans_[name + ".weights"] = std::as_writable_bytes(std::span(bytes));
    }
    tables_.push_back(checkpointer_.table("touched", touched_, dim, {.codec = uniform<8>{}}));
    spans_["touched.weights"] = std::as_writable_bytes(std::span(touched_));
    checkpointer_.dense("bias", bias_);
    checkpointer_.state("seed", seed_);
    spans_["integers.weights"] = std::as_writable_bytes(std::span(integers_));
    spans_["integers.seen"] = std::as_writable_bytes(std::span(seen_));
    spans_["integers.flags"] = std::as_writable_bytes(std::span(flags_));
    spans_["dense/bias"] = std::as_writable_bytes(std::span(bias_));
    spans_["states/seed"] = std::as_writable_bytes(std::span(&seed_, 1));
  }

  void save_base_and_delta() {
    row_kinds::random_source random{7};
    const auto fill = [&](std::size_t row) {
      const auto kind = static_cast<row_kinds::kind>(row % row_kinds::kind_count);
      for (auto& weights : floats_) row_kinds::fill_row(random, kind, {weights.data() + row * dim, dim});
      std::vector<float> wide(dim);
      const auto narrow = [&](auto& list, auto&& to) {
        for (auto& weights : list) {
          row_kinds::fill_row(random, kind, wide);
          for (std::size_t d = 0; d < dim; ++d) weights[row * dim + d] = to(wide[d]);
        }
      };
      narrow(halves_, to_half);
      narrow(brains_, to_bfloat16);
      sums_[row] = wide[0];
    };
    for (std::size_t row = 0; row < rows; ++row) fill(row);
    for (auto& one : integers_) one = std::int32_t(random.next());
    for (auto& one : seen_) one = std::int64_t(random.next());
    for (auto& one : flags_) one = std::uint8_t(random.next());
    for (std::size_t i = 0; i < touched_.size(); ++i) touched_[i] = float(i % 31) / 8;
    checkpointer_.save(1).wait();
    const std::vector<int> changed{0, 1, 3, 8, 14, 19};
    for (auto& table : tables_) table.touch(changed);
    for (const int row : changed) {
      fill(std::size_t(row));
      seen_[std::size_t(row)] = row;
    }
    const auto change = [&](const char* name, const std::vector<int>& ids) {
      byte_tables_.at(name).touch(ids);
      for (const int id : ids) bytes_[name][std::size_t(id)] = 7;
    };
    change("sparse", {5, 70, 150});                                        // row ids as gaps
    change("dense", {1, 2, 4, 7, 9, 10, 13, 15, 17, 18, 20, 21, 23, 26});  // as a bitmap
    std::vector<int> ids(50);
    std::iota(ids.begin(), ids.end(), 20);
    ids.insert(ids.end(), {100, 101, 102, 103, 160, 161, 162, 163, 164, 165});
    change("runs", ids);
    bias_ = {1.5f, -0.0f, 1e-42f};
    seed_ = 0x0123456789abcdef;
    checkpointer_.save(2);
    checkpointer_.finish();
  }
  std::optional<restored> restore() { return checkpointer_.restore(); }
  [[nodiscard]] const spans& columns() const { return spans_; }

 private:
  static constexpr std::size_t rows = row_kinds::kind_count, dim = 5;

  /// The trainer goes on before any row of the save was written: rows of one table are copied aside.
  void touch_pending() {
    const std::vector<int> ids{3, 14, 15};
    tables_.back().touch(ids);
    for (const int id : ids) touched_[std::size_t(id) * dim] += 100;
  }

  template <class T>
  void add_small(const std::string& name, std::list<std::vector<T>>& list, codec_choice codec) {
    auto& weights = list.emplace_back(rows * dim);
    tables_.push_back(checkpointer_.table(name, weights, dim, {.codec = codec}));
    spans_[name + ".weights"] = std::as_writable_bytes(std::span(weights));
  }
  /// Optimizer columns, each with an encoding of its own.
  void add_moments() {
    std::vector<column> columns{{"sums", sums_, 1, two_bytes{}}};
    spans_["moments.sums"] = std::as_writable_bytes(std::span(sums_));
    for (const codec_choice codec : every_codec::choices) {
      const std::string name = "c" + std::to_string(codec.id) + "_" + std::to_string(codec.bits);
      auto& values = floats_.emplace_back(rows * dim);
      columns.emplace_back(name, values, dim, codec);
      spans_["moments." + name] = std::as_writable_bytes(std::span(values));
    }
    auto& weights = floats_.emplace_back(rows * dim);
    tables_.push_back(checkpointer_.table("moments", weights, dim,
                                          {.columns = std::move(columns), .codec = adaptive<4>{}}));
    spans_["moments.weights"] = std::as_writable_bytes(std::span(weights));
  }

  std::list<float_list> floats_;
  std::list<std::vector<half>> halves_;
  std::list<std::vector<bfloat16>> brains_;
  std::vector<float> sums_ = std::vector<float>(rows);
  std::vector<std::int32_t> integers_ = std::vector<std::int32_t>(2 * rows);
  std::vector<std::int64_t> seen_ = std::vector<std::int64_t>(rows);
  std::vector<std::uint8_t> flags_ = std::vector<std::uint8_t>(3 * rows);
  std::map<std::string, std::vector<std::uint8_t>> bytes_{{"dense", std::vector<std::uint8_t>(200)},
                                                          {"runs", std::vector<std::uint8_t>(200)},
                                                          {"sparse", std::vector<std::uint8_t>(200)}};
  float_list touched_ = float_list(rows * dim);
  float_list bias_ = float_list(3);
  std::uint64_t seed_ = 0;
  spans spans_;
  checkpointer<policies<every_codec, one_shot, Sink>> checkpointer_;
  using table_type = typename decltype(checkpointer_)::table_type;
  std::vector<table_type> tables_;
  std::map<std::string, table_type> byte_tables_;
};

}  // namespace

TEST_CASE("the worked example of docs/format.md is what the library reads") {
  const worked_example example = read_example();
  REQUIRE(names_of(example.sink, "").size() == 2);
  REQUIRE(example.values.size() == 3);
  example_model model(example.sink);
  const auto found = model.ckpt.restore();
  REQUIRE(found);
  CHECK(found->sequence == 1);
  CHECK(found->step == 7);
  CHECK(model.weights == example.values.at("users.weights"));
  CHECK(model.adagrad == example.values.at("users.adagrad"));
  CHECK(model.bias == example.values.at("bias"));
}

TEST_CASE("the golden checkpoint is restored to what it was") {
  golden_model model(load_blobs(golden_folder / "blobs"));
  const auto found = model.restore();
  REQUIRE(found);
  CHECK(found->step == 2);
  CHECK_FALSE(found->full);
  CHECK(found->passed_over.empty());
  CHECK(found->metadata.at(0).second == "by checkrow");
  std::size_t files = 0;
  for (const auto& file : fs::recursive_directory_iterator(golden_folder / "expected"))
    files += file.is_regular_file();
  CHECK(files == model.columns().size());
  for (const auto& [name, column] : model.columns()) {
    INFO(name);
    const std::string expected = read_file(golden_folder / "expected" / (name + ".bin"));
    REQUIRE(expected.size() == column.size());
    CHECK(std::memcmp(expected.data(), column.data(), column.size()) == 0);
  }
}

TEST_CASE("the golden checkpoint has every codec, type of column, kind of chunk and way to write row ids") {
  const memory blobs = load_blobs(golden_folder / "blobs");
  std::set<std::tuple<std::uint16_t, std::uint8_t, element_type>> columns;
  std::set<format::chunk_kind> kinds;
  std::set<format::index_kind> indices;
  unsigned aside = 0;
  for (const std::string& name : names_of(blobs, ".segment")) {
    const auto found = blobs.find(name);
    const bytes_type& segment = *found;
    const auto place = format::read_trailer(std::span(segment).last(format::trailer_bytes), segment.size());
    REQUIRE(place);
    const auto footer = std::span(segment).subspan(place->offset, place->bytes);
    std::vector<format::footer_entry> entries;
    REQUIRE(format::read_footer(footer, format::load<format::attempt_id>(footer.data() + 24), place->offset,
                                entries) == nullptr);
    for (const format::footer_entry& entry : entries) {
      format::chunk_header header;
      const auto head = std::span(segment).subspan(entry.offset, entry.head_bytes);
      REQUIRE(format::unknown_in_head(head) == nullptr);
      REQUIRE(format::read_head(head, header) == nullptr);
      kinds.insert(header.kind);
      indices.insert(header.index);
      aside += header.flags == format::chunk_flag_aside ? 1 : 0;
      for (const format::chunk_column& column : header.columns)
        columns.emplace(column.codec.id, column.codec.bits, column.shape.element);
    }
  }
  CHECK(kinds.size() == 3);
  CHECK(indices.size() == 4);
  CHECK(aside == 2);  // one in the base, one in the delta
  every_codec{}.for_each([&](const auto& codec) {
    for (const element_type type : {element_type::float32, element_type::float16, element_type::bfloat16}) {
      CAPTURE(codec.name, int(codec.bits), int(type));
      const std::uint8_t bytes = type == element_type::float32 ? 4 : 2;
      CHECK(columns.contains({codec_choice(codec).id, codec_choice(codec).bits, type}) ==
            codec.accepts({type, bytes, 5}));
    }
  });
}

TEST_CASE("what was written while the format was provisional is read, and deltas go on from it") {
  memory sink = load_blobs(tests_folder / "golden" / "format1-provisional" / "blobs");
  const auto is_provisional = [&](const std::string& name) {
    return sink.find(name)->at(12) == std::byte{1};
  };
  REQUIRE(is_provisional(names_of(sink, ".segment").at(0)));
  for (const std::uint64_t step : {7, 8}) {
    example_model model(sink);
    const auto found = model.ckpt.restore();
    REQUIRE(found);
    CHECK(found->step == step);
    CHECK(found->passed_over.empty());
    CHECK(model.adagrad == (step == 7 ? float_list{0.5f, 1.5f, 2.5f} : float_list{0.5f, 9, 2.5f}));
    if (step == 8) break;
    model.table->touch(std::array{1});
    model.adagrad[1] = 9;
    model.ckpt.save(8).wait();
  }
  CHECK(names_of(sink, ".segment").size() == 2);  // the delta rests on the provisional base
  CHECK(!is_provisional(names_of(sink, ".segment").at(1)));
}

// Not a test: see golden/README.md.
TEST_CASE("write the golden checkpoint and the worked example anew", "[.golden]") {
  const char* const out = std::getenv("CHECKROW_GOLDEN_OUT");
  if (out == nullptr) return;
  const fs::path golden = fs::path(out) / "format1", example = fs::path(out) / "example";
  fs::remove_all(golden);
  fs::remove_all(example);
  golden_model(directory{(golden / "blobs").string()}).save_base_and_delta();
  golden_model restored_model(directory{(golden / "blobs").string()});
  REQUIRE(restored_model.restore());
  for (const auto& [name, column] : restored_model.columns()) {
    const fs::path to = golden / "expected" / (name + ".bin");
    fs::create_directories(to.parent_path());
    std::ofstream(to, std::ios::binary)
        .write(reinterpret_cast<const char*>(column.data()), std::streamsize(column.size()));
  }
  example_model model(directory{example.string()});
  model.train();
  model.ckpt.save(7);
  model.ckpt.finish();
  fs::remove(golden / "blobs" / "part-0.lock");
  fs::remove(example / "part-0.lock");
}
