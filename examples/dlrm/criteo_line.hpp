// One line of Criteo's public click log: a label, 13 integers and 26 hexadecimal words, tab-separated.
// Integers and words may be empty.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "hash.hpp"
#include "sample.hpp"

namespace dlrm {

namespace criteo {

/// The whole of `text` as a number; nothing where it isn't one.
template <class Number>
[[nodiscard]] std::optional<Number> number(std::string_view text, int base = 10) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The tab-separated fields of a line, one after the other.
class fields {
 public:
  explicit fields(std::string_view line) : rest_(line) {}

  /// The next field, which may be empty; false where the line is used up.
  bool next(std::string_view& field) {
    if (done_) return false;
    const std::size_t tab = rest_.find('\t');
    done_ = tab == std::string_view::npos;
    field = rest_.substr(0, tab);
    if (!done_) rest_.remove_prefix(tab + 1);
    return true;
  }

  [[nodiscard]] bool done() const noexcept { return done_; }

 private:
  std::string_view rest_;
  bool done_ = false;
};

}  // namespace criteo

/// Reads `text` (without its newline; untrusted) into `to`, its index excepted; false where it is no sample.
/// Integers become log(1 + max(x, 0)), 0 where empty. Words are hashed to a row; an empty one is a word too.
[[nodiscard]] inline bool parse_criteo_line(std::string_view text, const table_sizes& sizes, sample& to) {
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  criteo::fields line(text);
  std::string_view field;
  if (!line.next(field) || (field != "0" && field != "1")) return false;
  to.label = to.probability = field == "1" ? 1.0f : 0.0f;
  for (float& value : to.numeric) {
    if (!line.next(field)) return false;
    value = 0;
    if (field.empty()) continue;
    const auto count = criteo::number<std::int64_t>(field);
    if (!count) return false;
    if (*count > 0) value = std::log1p(static_cast<float>(*count));
  }
  for (std::size_t t = 0; t < table_count; ++t) {
    if (!line.next(field)) return false;
    std::uint64_t word = ~std::uint64_t{0};
    if (!field.empty()) {
      const auto value = criteo::number<std::uint32_t>(field, 16);
      if (!value) return false;
      word = *value;
    }
    to.rows[t] = below(sizes[t], mix(t, word) >> 32);
  }
  return line.done();  // more than 40 fields are no sample
}

}  // namespace dlrm
