// A file descriptor that closes itself, and the few system calls around it, with errors that name the path.
#pragma once

#include <cerrno>
#include <checkrow/error.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace checkrow::inline v0::detail {

/// With what to do about the errnos that users meet.
[[nodiscard]] error system_error(const std::string& what, const std::string& path, int os_error = errno);

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

  [[nodiscard]] static result<file> open(const std::string& path, int flags, const char* what);

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  void close() noexcept;

  [[nodiscard]] status read(std::uint64_t offset, std::span<std::byte> out) const;
  [[nodiscard]] result<std::uint64_t> size() const;

 private:
  int descriptor_ = -1;
  std::string path_;
};

}  // namespace checkrow::inline v0::detail

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/file.hpp>
#endif
