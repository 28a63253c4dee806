// Our writer and reader of JSON text against nlohmann/json's.
#include <catch_shim.hpp>
#include <checkrow/format/json_text.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

using json = nlohmann::json;
using namespace checkrow::format::detail;

namespace {

std::string some_text(std::mt19937_64& random) {
  static const std::string pieces[] = {
      "a",  "\"", "\\",      "\n",         "\x01",         "\x1f",        "\x7f", "/",
      "[]", "{}", "\u00e9",  "\u20ac",     "\U0001f600",   "\uffff",      ",",    ":",
      "u",  " ",  "\\u0041", "\U0010ffff", "\u0080\u0800", "long enough", "\t",   "\b\f\r"};
  std::string text;
  for (auto left = random() % 6; left-- != 0;) text += pieces[random() % std::size(pieces)];
  return text;
}

json some_json(std::mt19937_64& random, int depth) {
  switch (random() % (depth == 0 ? 6 : 8)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return random() >> random() % 64;
    case 3:
      return -std::int64_t(random() % 1000) - 1;
    case 4:
      return std::ldexp(double(random()), int(random() % 600) - 300);
    case 5:
      return some_text(random);
    case 6: {
      json items = json::array();
      for (auto left = random() % 5; left-- != 0;) items.push_back(some_json(random, depth - 1));
      return items;
    }
    default: {
      json members = json::object();
      for (auto left = random() % 5; left-- != 0;) members[some_text(random)] = some_json(random, depth - 1);
      return members;
    }
  }
}

void check_same(json_view view, const json& expected) {
  std::uint64_t integer = 0;
  double real = 0;
  std::string text;
  CHECK(view.get(integer) == expected.is_number_unsigned());
  CHECK(view.get(real) == expected.is_number());
  CHECK(view.get(text) == expected.is_string());
  if (expected.is_number_unsigned()) CHECK(integer == expected.get<std::uint64_t>());
  if (expected.is_number()) CHECK(real == expected.get<double>());
  if (expected.is_string()) CHECK(text == expected.get<std::string>());
  if (!expected.is_structured() && !expected.is_string()) CHECK(json::parse(view.text) == expected);

  json_items items(view);
  json_view key, value;
  std::size_t count = 0;
  for (auto item = expected.begin(); expected.is_structured() && items.next(key, value); ++item, ++count) {
    REQUIRE(item != expected.end());
    if (expected.is_object()) {
      CHECK(key.get(text));
      CHECK(text == item.key());
    }
    check_same(value, *item);
  }
  CHECK(!items.next(key, value));
  if (expected.is_structured()) CHECK(count == expected.size());
}

void walk(json_view view) {
  std::uint64_t integer = 0;
  double real = 0;
  std::string text;
  (void)view.get(integer), (void)view.get(real), (void)view.get(text);
  json_view key, value;
  for (json_items items(view); items.next(key, value);) {
    if (view.is('{')) REQUIRE(key.get(text));
    if (!is_json(value.text)) FAIL(value.text << " within " << view.text);
    walk(value);
  }
}

void write(json_writer& out, const char* key, const json& value) {
  if (value.is_number_unsigned()) return out.put(key, value.get<std::uint64_t>());
  if (value.is_number_float()) return out.put_real(key, value.get<double>());
  if (value.is_string()) return out.put(key, value.get_ref<const std::string&>());
  if (value.is_boolean()) return out.put_flag(key, value.get<bool>());
  if (!value.is_structured()) return out.put_literal(key, value.dump());
  out.open(key, value.is_object() ? '{' : '[');
  for (auto item = value.begin(); item != value.end(); ++item)
    write(out, value.is_object() ? item.key().c_str() : nullptr, *item);
  out.close(value.is_object() ? '}' : ']');
}

}  // namespace

TEST_CASE("text of JSON is read as nlohmann's values are") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const json expected = some_json(random, 4);
    for (const std::string& text : {expected.dump(), expected.dump(2), expected.dump(-1, ' ', true)}) {
      REQUIRE(is_json(text));
      check_same({text}, expected);
    }
  }
}

TEST_CASE("damaged text of JSON is refused, or read without harm") {
  std::mt19937_64 random(4);
  const std::string_view bytes = "\"\\{}[],:u09-.etn \n\t\x01\xff";
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = some_json(random, 3).dump(-1, ' ', random() % 2 == 0);
    for (auto left = random() % 3 + 1; left-- != 0;)
      text[random() % text.size()] = bytes[random() % bytes.size()];
    const std::vector<char> exact(text.begin(), text.end());  // no terminator that would hide a read past it
    const std::string_view view(exact.data(), exact.size());
    if (!is_json(view) || view.front() <= ' ' || view.back() <= ' ') continue;
    ++accepted;
    walk({view});
  }
  CHECK(accepted > 1000);
}

TEST_CASE("JSON is written as nlohmann writes it") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 2000; ++i) {
    const json expected = json::array({some_json(random, 4)});
    json_writer out;
    write(out, nullptr, expected);
    REQUIRE(json::accept(out.text()));
    CHECK(json::parse(out.text()) == expected);
    // Numbers with a fraction have several shortest forms.
    if (expected.dump().find_first_of(".e") == std::string::npos) CHECK(out.text() == expected.dump());
  }
}

TEST_CASE("every character and every byte that is none become valid JSON") {
  for (unsigned first = 0; first < 256; ++first)
    for (unsigned second = 0; second < 256; ++second) {
      const std::string text{char(first), char(second), 'x', char(first)};
      json_writer out;
      out.put(nullptr, text);
      const json read = json::parse(out.text(), nullptr, false);
      if (read.is_discarded()) FAIL("bytes " << first << ", " << second << " became " << out.text());
      if (first < 0x80 && second < 0x80 && out.text() != json(text).dump()) FAIL(out.text());
      std::string back;
      if (!json_view{out.text()}.get(back) || back != read.get<std::string>()) FAIL(out.text());
    }
}

TEST_CASE("UTF-8: what nlohmann accepts, and nothing else, is a character") {
  const auto agrees = [](const std::string& text) {
    bool ours = true;
    for (std::string_view left = text; !left.empty() && ours;
         left.remove_prefix(ours ? utf8_length(left) : 0))
      ours = utf8_length(left) != 0;
    return ours == json::accept("\"" + text + "\"");
  };
  for (unsigned first = 0x80; first < 256; ++first)
    for (unsigned second = 0x70; second < 256; ++second)
      for (const char* tail :
           {"", "\x80", "\xbf", "\x80\x80", "\xbf\xbf", "\x80\x7f", "\xc0\x80", "\xbf\xbf\xbf"}) {
        const std::string text = std::string{char(first), char(second)} + tail;
        if (!agrees(text)) FAIL("bytes " << first << ", " << second << " and " << std::size_t(text.size()));
      }
}

TEST_CASE("reals read back as they were written") {
  std::mt19937_64 random(3);
  using limits = std::numeric_limits<double>;
  std::vector<double> values{0.0,
                             1.0,
                             -1.0,
                             0.1,
                             1e300,
                             100000,
                             123456789012345680000.0,
                             limits::min(),
                             limits::denorm_min(),
                             limits::max(),
                             1e-7,
                             1e21};
  for (int i = 0; i < 10000; ++i) values.push_back(std::ldexp(double(random()), int(random() % 2000) - 1040));
  for (const double value : values) {
    json_writer out;
    out.put_real(nullptr, value);
    const json read = json::parse(out.text());
    double back = -1;
    if (!read.is_number_float() || read.get<double>() != value || !json_view{out.text()}.get(back) ||
        back != value)
      FAIL(value << " became " << out.text());
  }
  json_writer out;
  out.put_real(nullptr, limits::quiet_NaN());
  CHECK(out.text() == "null");
}
