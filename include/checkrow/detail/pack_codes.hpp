// Codes of 1 to 8 bits: code i lies at bits [i * Bits, (i + 1) * Bits) of its row, little-endian.
#pragma once

#include <checkrow/version.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace checkrow::inline v0::detail {

/// Eight codes, one a byte, to the lowest 8 * Bits bits.
template <int Bits>
[[nodiscard]] constexpr std::uint64_t gather_codes(std::uint64_t codes) noexcept {
  constexpr std::uint64_t pairs = 0x00ff00ff00ff00ff, quads = 0x0000ffff0000ffff, half = 0x00000000ffffffff;
  codes = (codes & pairs) | ((codes >> 8 & pairs) << Bits);
  codes = (codes & quads) | ((codes >> 16 & quads) << 2 * Bits);
  return (codes & half) | ((codes >> 32) << 4 * Bits);
}

/// The inverse of gather_codes.
template <int Bits>
[[nodiscard]] constexpr std::uint64_t scatter_codes(std::uint64_t packed) noexcept {
  constexpr std::uint64_t four = (std::uint64_t{1} << 4 * Bits) - 1;
  constexpr std::uint64_t two = ((std::uint64_t{1} << 2 * Bits) - 1) * 0x0000000100000001;
  constexpr std::uint64_t one = ((std::uint64_t{1} << Bits) - 1) * 0x0001000100010001;
  packed = (packed & four) | ((packed >> 4 * Bits & four) << 32);
  packed = (packed & two) | ((packed >> 2 * Bits & two) << 16);
  return (packed & one) | ((packed >> Bits & one) << 8);
}

/// Bytes of `count` packed codes.
[[nodiscard]] constexpr std::size_t packed_bytes(std::size_t count, int bits) noexcept {
  const auto width = static_cast<std::size_t>(bits);
  return count / 8 * width + (count % 8 * width + 7) / 8;
}

/// Packs `count` codes; unused bits of the last byte become zero.
template <int Bits>
void pack_codes(const std::uint8_t* codes, std::size_t count, std::byte* out) noexcept {
  for (; count >= 8; count -= 8, codes += 8, out += Bits) {
    std::uint64_t eight;
    std::memcpy(&eight, codes, 8);
    eight = gather_codes<Bits>(eight);
    std::memcpy(out, &eight, Bits);
  }
  if (count == 0) return;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < count; ++i) last |= std::uint64_t{codes[i]} << (8 * i);
  last = gather_codes<Bits>(last);
  std::memcpy(out, &last, packed_bytes(count, Bits));
}

/// Unpacks `count` codes; reads packed_bytes(count, Bits) bytes.
template <int Bits>
void unpack_codes(const std::byte* in, std::size_t count, std::uint8_t* codes) noexcept {
  for (; count >= 8; count -= 8, codes += 8, in += Bits) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, in, Bits);
    eight = scatter_codes<Bits>(eight);
    std::memcpy(codes, &eight, 8);
  }
  if (count == 0) return;
  std::uint64_t last = 0;
  std::memcpy(&last, in, packed_bytes(count, Bits));
  last = scatter_codes<Bits>(last);
  for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint8_t>(last >> (8 * i));
}

}  // namespace checkrow::inline v0::detail
