// How a directory writes: the figures that a user may change.
#pragma once

#include <checkrow/version.hpp>
#include <cstddef>
#include <cstdint>

namespace checkrow::inline v0 {

namespace detail {
class file_calls;
extern const file_calls system_calls;
}  // namespace detail

/// Sizes of at least one blob's buffer go through `buffers` of them, behind the caller's back; smaller blobs
/// are written at once when they are committed.
struct write_options {
  std::size_t buffer_bytes = std::size_t{4} << 20;  ///< of one write; rounded up to a multiple of 4096
  std::uint32_t buffers = 8;  ///< of each writer, at least 1: its memory, beyond which append() waits
  std::uint32_t threads = 4;  ///< that write, where there is no io_uring; at least 1
  bool direct = true;         ///< past the page cache (O_DIRECT), where the file system lets us
  bool uring = true;          ///< by io_uring, where it is compiled in and direct writes work
  std::uint64_t preallocate_bytes = std::uint64_t{256}
                                    << 20;                  ///< that a file grows by at most; 0: as written
  const detail::file_calls* calls = &detail::system_calls;  ///< for tests: see detail/file_calls.hpp

  /// The most memory that one writer holds, in bytes.
  [[nodiscard]] constexpr std::uint64_t memory() const noexcept {
    return (buffers == 0 ? 1 : buffers) * std::uint64_t(rounded_buffer());
  }
  [[nodiscard]] constexpr std::size_t rounded_buffer() const noexcept {
    return buffer_bytes == 0 ? 4096 : (buffer_bytes + 4095) / 4096 * 4096;
  }
};

}  // namespace checkrow::inline v0

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/file_calls.hpp>
#endif
