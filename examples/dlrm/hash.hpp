// Counter-based random numbers: a value is a pure function of its key, so anything drawn from it can be drawn
// again from any position, in any order, on any machine.
#pragma once

#include <cstdint>

namespace dlrm {

/// splitmix64's finalizer: 64 well mixed bits from 64.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// One stream of numbers per key.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t key, std::uint64_t counter) noexcept {
  return mix(key ^ mix(counter));
}

/// A whole number in [0, n) from 32 random bits; n < 2^32.
[[nodiscard]] constexpr std::uint64_t below(std::uint64_t n, std::uint64_t bits32) noexcept {
  return (n * (bits32 & 0xffffffffu)) >> 32;
}

/// Uniform in [-1, 1), exact in a float.
[[nodiscard]] constexpr float uniform(std::uint64_t bits) noexcept {
  return static_cast<float>(static_cast<std::int64_t>(bits >> 40) - (1 << 23)) / static_cast<float>(1 << 23);
}

}  // namespace dlrm
