// XXH3-64, the checksum of every byte on disk. The only header that includes xxHash.
#pragma once

#include <checkrow/version.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

// Inline everything under names of its own: nothing to link, and a user's xxhash.h before or after this one,
// inlined or not, keeps working.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push  // gcc 12 sees uninitialised values in its own AVX-512 intrinsics
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if !defined(XXH_INLINE_ALL)
#define XXH_INLINE_ALL
#include <xxhash.h>
#undef XXH_INLINE_ALL
#else
#include <xxhash.h>
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

namespace checkrow::inline v0::format {

[[nodiscard]] inline std::uint64_t hash(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace checkrow::inline v0::format
