// 128 bits that no other attempt has.
#pragma once

#include <atomic>
#include <checkrow/format/constants.hpp>
#include <checkrow/format/hash.hpp>
#include <chrono>
#include <cstring>

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

namespace checkrow::inline v0::detail {

/// From the kernel's random bytes, mixed with the time, the process and a counter, in case there are none.
[[nodiscard]] inline format::attempt_id new_attempt() noexcept {
  static std::atomic<std::uint64_t> counter{0};
  struct {
    std::uint64_t random[2] = {0, 0};
    std::int64_t wall = std::chrono::system_clock::now().time_since_epoch().count();
    std::int64_t steady = std::chrono::steady_clock::now().time_since_epoch().count();
    std::uint64_t count = ++counter;
    std::uint64_t process = 0;
  } seed;
#if __has_include(<unistd.h>)
  seed.process = std::uint64_t(::getpid());
  if (::getentropy(seed.random, sizeof seed.random) != 0) seed.random[0] = seed.random[1] = 0;
#endif
  format::attempt_id out;
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint64_t bits = format::hash(std::as_bytes(std::span(&seed, 1)));
    std::memcpy(out.data() + 8 * half, &bits, 8);
    seed.random[0] ^= bits + 1;
  }
  return out;
}

}  // namespace checkrow::inline v0::detail
