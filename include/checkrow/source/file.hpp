// Bodies of detail/file.hpp.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <checkrow/detail/file.hpp>
#include <cstring>

namespace checkrow::inline v0::detail {

[[nodiscard]] inline const char* advice_for(int os_error) noexcept {
  switch (os_error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space: the rows stay dirty and the next save tries again";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a folder that this user may write";
    case ENOENT:
    case ENOTDIR:
      return "check the path";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files";
    default:
      return "check the storage";
  }
}

CHECKROW_INLINE error system_error(const std::string& what, const std::string& path, int os_error) {
  return {os_error == ENOENT ? error_kind::not_found : error_kind::io, what + ": " + std::strerror(os_error),
          path, advice_for(os_error), os_error};
}

CHECKROW_INLINE result<file> file::open(const std::string& path, int flags, const char* what) {
  int descriptor = -1;
  do descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return system_error(what, path);
  return file(descriptor, path);
}

CHECKROW_INLINE void file::close() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

CHECKROW_INLINE status file::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ::ssize_t n = ::pread(descriptor_, out.data(), out.size(), ::off_t(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("cannot read", path_);
    if (n == 0)
      return make_error(error_kind::corrupt, {"the file ends before the bytes asked for"}, {path_},
                        {"it was truncated"});
    out = out.subspan(std::size_t(n));
    offset += std::uint64_t(n);
  }
  return {};
}

CHECKROW_INLINE result<std::uint64_t> file::size() const {
  struct ::stat found {};
  if (::fstat(descriptor_, &found) != 0) return system_error("cannot look at", path_);
  return std::uint64_t(found.st_size);
}

}  // namespace checkrow::inline v0::detail
