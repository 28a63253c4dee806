// Leases of files: a shared lock says that somebody reads what the file stands for.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <checkrow/detail/file.hpp>

namespace checkrow::inline v0::detail {

/// 0, or errno. Waits, unless `operation` says otherwise. A file system without locks counts as locked.
[[nodiscard]] inline int lock_file(const file& of, int operation) noexcept {
  while (::flock(of.descriptor(), operation) != 0) {
    if (errno == EINTR) continue;
    const bool no_locks = errno == ENOSYS || errno == ENOTSUP || errno == ENOLCK || errno == EINVAL;
    return no_locks ? 0 : errno;
  }
  return 0;
}

/// The file with a shared lock on it, which the kernel frees with the descriptor, however the process ends.
/// not_found where it is removed before that.
[[nodiscard]] inline result<file> lease_file(const std::string& path) {
  auto opened = file::open(path, O_RDONLY, "cannot open");
  if (!opened) return opened;
  if (const int why = lock_file(*opened, LOCK_SH); why != 0) return system_error("cannot lock", path, why);
  struct ::stat found {};
  if (::fstat(opened->descriptor(), &found) != 0) return system_error("cannot look at", path);
  if (found.st_nlink == 0) return system_error("cannot open", path, ENOENT);
  return opened;
}

/// Removes the file, unless somebody has a lease of it: then false. True where it is gone already.
[[nodiscard]] inline result<bool> remove_unleased(const std::string& path) {
  auto opened = file::open(path, O_RDWR, "cannot open");  // NFS locks exclusively only what may be written
  if (!opened && opened.error().kind != error_kind::not_found)
    opened = file::open(path, O_RDONLY, "cannot open");
  if (!opened && opened.error().kind == error_kind::not_found) return true;
  if (!opened) return std::move(opened).error();
  const int why = lock_file(*opened, LOCK_EX | LOCK_NB);
  if (why == EWOULDBLOCK) return false;
  if (why != 0) return system_error("cannot lock", path, why);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error("cannot remove", path);
  return true;
}

}  // namespace checkrow::inline v0::detail
