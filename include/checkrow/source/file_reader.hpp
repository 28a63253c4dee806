// Bodies of detail/file_reader.hpp.
#pragma once

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <checkrow/detail/file_reader.hpp>

namespace checkrow::inline v0::detail {

CHECKROW_INLINE result<file_reader> file_reader::open(const std::string& path) {
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

CHECKROW_INLINE status file_reader::read(std::uint64_t offset, std::span<std::byte> out) const {
  const std::size_t whole = out.size() / page * page;
  if (direct_ != nullptr && whole >= least && offset % page == 0 &&
      reinterpret_cast<std::uintptr_t>(out.data()) % page == 0 && !cached(offset, out.first(page))) {
    const std::size_t done = read_direct(offset, out.first(whole));
    offset += done;
    out = out.subspan(done);
  }
  return buffered_.read(offset, out);
}

CHECKROW_INLINE bool file_reader::cached([[maybe_unused]] std::uint64_t offset,
                                         [[maybe_unused]] std::span<std::byte> first) const noexcept {
#ifdef RWF_NOWAIT
  const ::iovec to{first.data(), first.size()};
  return ::preadv2(buffered_.descriptor(), &to, 1, ::off_t(offset), RWF_NOWAIT) > 0;
#else
  return true;
#endif
}

CHECKROW_INLINE std::size_t file_reader::read_direct(std::uint64_t offset,
                                                     std::span<std::byte> out) const noexcept {
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

}  // namespace checkrow::inline v0::detail
