// Reads a file that may be far larger than the page cache: what is cached from there, the rest past it.
#pragma once

#include <checkrow/detail/file.hpp>
#include <memory>

namespace checkrow::inline v0::detail {

/// Large pieces at page boundaries, into memory at one, are read with O_DIRECT where the cache does not have
/// them: the kernel copies nothing and makes no pages. Everything else, and every file that refuses, is read
/// as usual. From any number of threads.
class file_reader {
 public:
  [[nodiscard]] static result<file_reader> open(const std::string& path);

  [[nodiscard]] std::uint64_t bytes() const noexcept { return size_; }

  [[nodiscard]] status read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t least = std::size_t{1} << 19;  ///< from here on a read is worth its own way

  file_reader(file buffered, std::uint64_t size) : buffered_(std::move(buffered)), size_(size) {}

  /// Is the piece's first page in the cache? (Then the rest is likely to be, and is right if it is not.)
  [[nodiscard]] bool cached(std::uint64_t offset, std::span<std::byte> first) const noexcept;
  /// How many bytes it read, of whole pages; less than asked for where the file refuses: they are then read
  /// the usual way, which says what is wrong.
  [[nodiscard]] std::size_t read_direct(std::uint64_t offset, std::span<std::byte> out) const noexcept;

  file buffered_;
  std::uint64_t size_;
  std::shared_ptr<file> direct_;  ///< null: the file refuses it, or is small
};

}  // namespace checkrow::inline v0::detail

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/file_reader.hpp>
#endif
