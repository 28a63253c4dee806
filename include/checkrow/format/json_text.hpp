// JSON as text: a writer that appends to a string, and views into text that nlohmann/json has accepted. The
// only header that includes it. No tree is built of either: a program that holds one checkpointer took 2 s
// longer to compile with nlohmann's values in it.
#pragma once

#include <charconv>
#include <checkrow/version.hpp>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace checkrow::inline v0::format::detail {

/// The bytes of the UTF-8 character that `text` starts with; 0 where it starts with none. `text` is not
/// empty.
[[nodiscard, gnu::noinline]] inline std::size_t utf8_length(std::string_view text) noexcept {
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = std::uint8_t(text[0]);
  const std::size_t length = first < 0x80         ? 1
                             : first >> 5 == 0x6  ? 2
                             : first >> 4 == 0xe  ? 3
                             : first >> 3 == 0x1e ? 4
                                                  : 0;
  if (length < 2) return length;
  if (length > text.size()) return 0;
  std::uint32_t point = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = std::uint8_t(text[i]);
    if (next >> 6 != 2) return 0;
    point = point << 6 | (next & 0x3fu);
  }
  const bool is_surrogate = point >> 11 == 0x1b;
  return point < least[length] || point > 0x10ffff || is_surrogate ? 0 : length;
}

[[gnu::noinline]] inline void append_utf8(std::string& out, std::uint32_t point) {
  const auto tail = [&](unsigned shift) { out += char(0x80 | (point >> shift & 0x3f)); };
  if (point < 0x80) {
    out += char(point);
  } else if (point < 0x800) {
    out += char(0xc0 | point >> 6), tail(0);
  } else if (point < 0x10000) {
    out += char(0xe0 | point >> 12), tail(6), tail(0);
  } else {
    out += char(0xf0 | point >> 18), tail(12), tail(6), tail(0);
  }
}

/// Appends `text` in quotes. Bytes that are no UTF-8 become U+FFFD each.
[[gnu::noinline]] inline void append_quoted(std::string& out, std::string_view text) {
  constexpr std::string_view escaped = "\b\t\n\f\r\"\\", names = "btnfr\"\\";
  constexpr char digits[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const char first = text[0];
    const std::size_t length = utf8_length(text);
    if (const std::size_t at = escaped.find(first); at != escaped.npos)
      (out += '\\') += names[at];
    else if (std::uint8_t(first) < 0x20)
      ((out += "\\u00") += digits[first >> 4]) += digits[first & 15];
    else if (length == 0)
      append_utf8(out, 0xfffd);
    else
      out.append(text.data(), length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

/// Appends values to one line of JSON. Commas come by themselves; that members come in order of name is the
/// caller's part. `key` is null within an array.
class json_writer {
 public:
  [[gnu::noinline]] void open(const char* key, char bracket) {
    begin(key);
    text_ += bracket;
  }
  void close(char bracket) { text_ += bracket; }

  [[gnu::noinline]] void put(const char* key, std::uint64_t value) {
    begin(key);
    text_ += std::to_string(value);
  }
  [[gnu::noinline]] void put(const char* key, std::string_view value) {
    begin(key);
    append_quoted(text_, value);
  }
  /// Reads back as the same number, and as no integer; null where it is not finite.
  [[gnu::noinline]] void put_real(const char* key, double value) {
    if (!std::isfinite(value)) return put_literal(key, "null");
    char digits[32];
    const std::string_view text(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    put_literal(key, text);
    if (text.find_first_of(".e") == text.npos) text_ += ".0";
  }
  void put_flag(const char* key, bool value) { put_literal(key, value ? "true" : "false"); }
  /// `value` is JSON.
  [[gnu::noinline]] void put_literal(const char* key, std::string_view value) {
    begin(key);
    text_ += value;
  }

  [[nodiscard]] std::string& text() noexcept { return text_; }

 private:
  void begin(const char* key) {
    if (!text_.empty() && text_.back() != '{' && text_.back() != '[') text_ += ',';
    if (key == nullptr) return;
    append_quoted(text_, key);
    text_ += ':';
  }
  std::string text_;
};

/// Whether `text` is one value of JSON and nothing else. (To nlohmann's parser a zero byte is the end.)
[[nodiscard]] inline bool is_json(std::string_view text) {
  return text.find('\0') == text.npos && nlohmann::json::accept(text.data(), text.data() + text.size());
}

/// One value, no space around it, of text for which is_json holds; it lives as long as the text does.
struct json_view {
  std::string_view text;

  [[nodiscard]] bool is(char first) const noexcept { return text.starts_with(first); }
  [[nodiscard]] bool is_number() const noexcept {
    return is('-') || (!text.empty() && text[0] >= '0' && text[0] <= '9');
  }
  /// False where it is no unsigned integer of 64 bits.
  [[nodiscard, gnu::noinline]] bool get(std::uint64_t& out) const noexcept { return get_whole(out); }
  [[nodiscard, gnu::noinline]] bool get(double& out) const noexcept { return is_number() && get_whole(out); }
  /// False where it is no string.
  [[nodiscard, gnu::noinline]] bool get(std::string& out) const {
    if (!is('"')) return false;
    out.clear();
    for (std::string_view left = text.substr(1, text.size() - 2); !left.empty();)
      if (left[0] == '\\') {
        take_escaped(left, out);
      } else {
        const std::size_t plain = std::min(left.find('\\'), left.size());
        out += left.substr(0, plain);
        left.remove_prefix(plain);
      }
    return true;
  }

 private:
  template <class Number>
  [[nodiscard]] bool get_whole(Number& out) const noexcept {
    const char* const end = text.data() + text.size();
    const auto [at, failed] = std::from_chars(text.data(), end, out);
    return failed == std::errc() && at == end;
  }
  static void take_escaped(std::string_view& left, std::string& out) {
    constexpr std::string_view names = "btnfr", meant = "\b\t\n\f\r";
    const char name = left[1];
    left.remove_prefix(2);
    if (name == 'u') return append_utf8(out, take_point(left));
    const std::size_t at = names.find(name);
    out += at == names.npos ? name : meant[at];
  }
  /// The code point after \u; with its second half where it is the first of a surrogate pair.
  [[nodiscard]] static std::uint32_t take_point(std::string_view& left) noexcept {
    const auto take = [&] {
      std::uint32_t digits = 0;
      std::from_chars(left.data(), left.data() + 4, digits, 16);
      left.remove_prefix(4);
      return digits;
    };
    const std::uint32_t high = take();
    if (high >> 10 != 0x36) return high;
    left.remove_prefix(2);
    return 0x10000 + ((high & 0x3ff) << 10 | (take() & 0x3ff));
  }
};

/// The items of an array, or the members of an object; none of any other value.
class json_items {
 public:
  explicit json_items(json_view of) noexcept
      : left_(of.is('{') || of.is('[') ? of.text.substr(1, of.text.size() - 2) : std::string_view()),
        has_keys_(of.is('{')) {}

  /// False at the end. `key` is a string of JSON, and only set within an object.
  [[nodiscard, gnu::noinline]] bool next(json_view& key, json_view& value) noexcept {
    skip(" \t\n\r,");
    if (left_.empty()) return false;
    if (has_keys_) key.text = take();
    skip(" \t\n\r:");
    value.text = take();
    return true;
  }

 private:
  void skip(std::string_view these) noexcept {
    left_.remove_prefix(std::min(left_.find_first_not_of(these), left_.size()));
  }
  /// Takes a value off the front: up to the quote or bracket that closes it, or to what ends a number or
  /// word.
  [[nodiscard]] std::string_view take() noexcept {
    std::size_t at = 0, depth = 0;
    if (const char first = left_[0]; first != '"' && first != '{' && first != '[') {
      at = std::min(left_.find_first_of(" \t\n\r,"), left_.size());
    } else {
      do {
        const char c = left_[at];
        if (c == '"')
          for (++at; left_[at] != '"'; ++at) at += left_[at] == '\\';
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
      } while (++at < left_.size() && depth != 0);
    }
    const std::string_view taken = left_.substr(0, at);
    left_.remove_prefix(at);
    return taken;
  }
  std::string_view left_;
  bool has_keys_;
};

}  // namespace checkrow::inline v0::format::detail
