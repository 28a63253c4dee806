// Reads a file that may be far larger than the page cache: what is cached from there, the rest past it.
#pragma once

#include <sys/uio.h>

#include <checkrow/detail/file.hpp>
#include <memory>

namespace checkrow::inline v0::detail {

/// Large pieces at page boundaries, into memory at one, are read with O_DIRECT where the cache does not have
/// them: the kernel copies nothing and makes no pages. Everything else, and every file that refuses, is read
/// as usual. From any number of threads.
class file_reader {
 public:
  [[nodiscard]] static result<file_reader> open(const std::string& path) {
    auto opened = file::open(path, O_RDONLY, "cannot open");
    if (!opened) return std::move(opened).error();
    auto size = opened->size();
    if (!size) return std::move(size).error();
    file_reader out(*std::move(opened), *size);
#if defined(O_DIRECT) && defined(RWF_NOWAIT)
    if (*size >= least)
      if (auto direct = file::open(path, O_RDONLY | O_DIRECT, "cannot open"))
        out.direct_ = std::make_shared<file>(*std::move(direct));
#endif
    return out;
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return size_; }

  [[nodiscard]] status read(std::uint64_t offset, std::span<std::byte> out) const {
    const std::size_t whole = out.size() / page * page;
    if (direct_ != nullptr && whole >= least && offset % page == 0 &&
        reinterpret_cast<std::uintptr_t>(out.data()) % page == 0 && !cached(offset, out.first(page))) {
      const std::size_t done = read_direct(offset, out.first(whole));
      offset += done;
      out = out.subspan(done);
    }
    return buffered_.read(offset, out);
  }

 private:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t least = std::size_t{1} << 19;  ///< from here on a read is worth its own way

  file_reader(file buffered, std::uint64_t size) : buffered_(std::move(buffered)), size_(size) {}

  /// Is the piece's first page in the cache? (Then the rest is likely to be, and is right if it is not.)
  [[nodiscard]] bool cached([[maybe_unused]] std::uint64_t offset,
                            [[maybe_unused]] std::span<std::byte> first) const noexcept {
#ifdef RWF_NOWAIT
    const ::iovec to{first.data(), first.size()};
    return ::preadv2(buffered_.descriptor(), &to, 1, ::off_t(offset), RWF_NOWAIT) > 0;
#else
    return true;
#endif
  }

  /// How many bytes it read, of whole pages; less than asked for where the file refuses: they are then read
  /// the usual way, which says what is wrong.
  [[nodiscard]] std::size_t read_direct(std::uint64_t offset, std::span<std::byte> out) const noexcept {
    std::size_t done = 0;
    while (done < out.size()) {
      const ::ssize_t n =
          ::pread(direct_->descriptor(), out.data() + done, out.size() - done, ::off_t(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      done += std::size_t(n);
      if (done % page != 0) return done / page * page;
    }
    return done;
  }

  file buffered_;
  std::uint64_t size_;
  std::shared_ptr<file> direct_;  ///< null: the file refuses it, or is small
};

}  // namespace checkrow::inline v0::detail
