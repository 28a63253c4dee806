// The system calls that write a blob, behind one seam, so that tests can let each of them fail.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <checkrow/version.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace checkrow::inline v0::detail {

/// Each call answers as the system's own does, errno included, and may come from several threads at once.
/// Stateless here; whoever derives from it keeps the object alive as long as the sinks that point to it.
class file_calls {
 public:
  [[nodiscard]] virtual int open(const char* path, int flags) const noexcept {
    return ::open(path, flags | O_CLOEXEC, 0666);
  }
  [[nodiscard]] virtual ::ssize_t pwrite(int to, const std::byte* bytes, std::size_t count,
                                         std::uint64_t offset) const noexcept {
    return ::pwrite(to, bytes, count, ::off_t(offset));
  }
  [[nodiscard]] virtual int fsync(int of) const noexcept { return ::fsync(of); }
  [[nodiscard]] virtual int ftruncate(int of, std::uint64_t bytes) const noexcept {
    return ::ftruncate(of, ::off_t(bytes));
  }
  [[nodiscard]] virtual int rename(const char* from, const char* to) const noexcept {
    return ::rename(from, to);
  }

  /// Makes the file `bytes` longer from `offset` on, with room on the device.
  [[nodiscard]] virtual int allocate(int in, std::uint64_t offset, std::uint64_t bytes) const noexcept {
#if defined(__linux__)
    return ::fallocate(in, 0, ::off_t(offset), ::off_t(bytes));
#else
    (void)in, (void)offset, (void)bytes;
    errno = EOPNOTSUPP;
    return -1;
#endif
  }

  /// Writes a range from the page cache to the device, and waits for it; that is not yet durable.
  [[nodiscard]] virtual int write_back(int of, std::uint64_t offset, std::uint64_t bytes) const noexcept {
#if defined(__linux__)
    return ::sync_file_range(of, ::off_t(offset), ::off_t(bytes), SYNC_FILE_RANGE_WRITE);
#else
    (void)of, (void)offset, (void)bytes;
    return 0;
#endif
  }

  /// What the file itself asks of direct writes: a power of two that offsets, sizes and addresses have to be
  /// multiples of. 0: it takes none. 1: it does not say, so only a write will tell.
  [[nodiscard]] virtual std::uint32_t direct_alignment(int of) const noexcept {
#if defined(STATX_DIOALIGN)
    struct ::statx found {};
    if (::statx(of, "", AT_EMPTY_PATH, STATX_DIOALIGN, &found) == 0 && (found.stx_mask & STATX_DIOALIGN) != 0)
      return found.stx_dio_mem_align > found.stx_dio_offset_align ? found.stx_dio_mem_align
                                                                  : found.stx_dio_offset_align;
#endif
    (void)of;
    return 1;
  }

  /// Where an io_uring is built in: 0, or the errno with which it is refused; how many of the bytes asked for
  /// are submitted at once; and the result that a completion is taken to have.
  [[nodiscard]] virtual int uring_refused() const noexcept { return 0; }
  [[nodiscard]] virtual std::size_t uring_bytes(std::size_t asked) const noexcept { return asked; }
  [[nodiscard]] virtual int uring_result(int result) const noexcept { return result; }
};

/// The system's own.
extern const file_calls system_calls;

}  // namespace checkrow::inline v0::detail

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/file_calls.hpp>
#endif
