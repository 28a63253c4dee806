// Little-endian loads and stores at byte offsets, and bounds-checked cursors over them.
#pragma once

#include <checkrow/format/constants.hpp>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace checkrow::inline v0::format {

template <class T>
requires std::is_trivially_copyable_v<T>
[[nodiscard]] T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
requires std::is_trivially_copyable_v<T>
void store(std::byte* to, const T& value) noexcept { std::memcpy(to, &value, sizeof value); }

[[nodiscard]] inline std::string hex(std::span<const std::uint8_t> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

/// 16 hex digits, most significant first.
[[nodiscard]] inline std::string hex(std::uint64_t value) {
  std::array<std::uint8_t, 8> bytes;
  for (unsigned i = 0; i < 8; ++i) bytes[i] = std::uint8_t(value >> (56 - 8 * i));
  return hex(std::span<const std::uint8_t>(bytes));
}

/// Exactly out.size() bytes from twice as many lower-case hex digits; false where the text is anything else.
[[nodiscard]] inline bool unhex(std::string_view text, std::span<std::uint8_t> out) noexcept {
  if (text.size() != 2 * out.size()) return false;
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = std::uint8_t(high * 16 + low);
  }
  return true;
}

}  // namespace checkrow::inline v0::format
