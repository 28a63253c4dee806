// A file descriptor that closes itself, and the few system calls around it, with errors that name the path.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <checkrow/error.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace checkrow::inline v0::detail {

/// What to do about the errnos that users meet.
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

[[nodiscard]] inline error system_error(const std::string& what, const std::string& path,
                                        int os_error = errno) {
  return {os_error == ENOENT ? error_kind::not_found : error_kind::io, what + ": " + std::strerror(os_error),
          path, advice_for(os_error), os_error};
}

class file {
 public:
  file() noexcept = default;
  file(int descriptor, std::string path) noexcept : descriptor_(descriptor), path_(std::move(path)) {}
  file(file&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}
  file& operator=(file&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~file() { close(); }

  [[nodiscard]] static result<file> open(const std::string& path, int flags, const char* what) {
    int descriptor = -1;
    do descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) return system_error(what, path);
    return file(descriptor, path);
  }

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  void close() noexcept {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

  [[nodiscard]] status read(std::uint64_t offset, std::span<std::byte> out) const {
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

  [[nodiscard]] result<std::uint64_t> size() const {
    struct ::stat found {};
    if (::fstat(descriptor_, &found) != 0) return system_error("cannot look at", path_);
    return std::uint64_t(found.st_size);
  }

 private:
  int descriptor_ = -1;
  std::string path_;
};

}  // namespace checkrow::inline v0::detail
