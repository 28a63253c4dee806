// The file of a blob that is being written: through the page cache, or past it where the file lets us.
#pragma once

#include <algorithm>
#include <atomic>
#include <checkrow/detail/file.hpp>
#include <checkrow/detail/file_calls.hpp>
#include <checkrow/detail/write_buffers.hpp>
#include <checkrow/sinks/write_options.hpp>

namespace checkrow::inline v0::detail {

/// write() may be called from several threads at once, for ranges that do not overlap; everything else by one
/// thread at a time.
///
/// Direct writes have a descriptor of their own. Its rules are the file's: offsets, sizes and addresses are
/// multiples of its alignment, at least 4096. What is left over, a blob's last bytes or the rest of a write
/// that ended in the middle, goes through the page cache by the other descriptor; the two meet only where one
/// has ended before the other begins.
class blob_file {
 public:
  blob_file(file opened, write_shared& shared, const write_options& options, bool durable)
      : file_(std::move(opened)),
        shared_(shared),
        calls_(*options.calls),
        step_(options.preallocate_bytes),
        durable_(durable) {}

  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  [[nodiscard]] const file_calls& calls() const noexcept { return calls_; }
  [[nodiscard]] write_shared& shared() const noexcept { return shared_; }
  [[nodiscard]] int direct_descriptor() const noexcept { return direct_.descriptor(); }
  /// Are whole blocks written past the page cache?
  [[nodiscard]] bool is_direct() const noexcept { return is_direct_.load(std::memory_order_acquire); }
  /// How many of `bytes` at this offset can be written so.
  [[nodiscard]] std::size_t direct_part(std::uint64_t offset, std::size_t bytes) const noexcept {
    return is_direct() && offset % alignment_ == 0 ? bytes / alignment_ * alignment_ : 0;
  }

  /// Tries to write past the page cache from here on, in pieces of that many bytes.
  void go_direct(std::size_t piece) {
#if defined(O_DIRECT)
    if (shared_.refused(shared_.direct)) return;
    const std::uint32_t asked = calls_.direct_alignment(file_.descriptor());
    if (asked == 0) return refuse_direct(EOPNOTSUPP);
    if (asked > piece || piece % asked != 0) return refuse_direct(EINVAL);
    alignment_ = std::max<std::uint32_t>(asked, 4096);
    int descriptor = -1;
    do descriptor = calls_.open(path().c_str(), O_WRONLY | O_DIRECT);
    while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) return refuse_direct(errno);
    direct_ = file(descriptor, path());
    is_direct_.store(true, std::memory_order_release);
#else
    (void)piece;
#endif
  }

  /// Room on the device up to `end` and somewhat further, if the file system gives it; a size that does not
  /// change lets direct writes run side by side.
  void reserve(std::uint64_t end) {
    if (step_ == 0 || end <= reserved_ || !is_direct()) return;
    const std::uint64_t more = std::max(end - reserved_, std::min(step_, std::max(reserved_, first_step)));
    if (calls_.allocate(file_.descriptor(), reserved_, more) == 0)
      reserved_ += more;
    else
      step_ = 0;  // not here, or not enough: the writes themselves will tell
  }

  /// Writes all of it, or remembers why not; after a failure nothing more is written.
  void write(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
    const std::uint64_t first = offset;
    bool cached = false;
    while (!bytes.empty()) {
      if (failed_.load(std::memory_order_relaxed) != 0) return;
      const std::size_t part = direct_part(offset, bytes.size());
      const ::ssize_t n = calls_.pwrite(part != 0 ? direct_.descriptor() : file_.descriptor(), bytes.data(),
                                        part != 0 ? part : bytes.size(), offset);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && part != 0 && (errno == EINVAL || errno == EOPNOTSUPP || errno == EPERM)) {
        refuse_direct(errno);
        continue;
      }
      if (n <= 0) return fail(n < 0 ? errno : EIO);
      cached = cached || part == 0;
      offset += std::uint64_t(n);
      bytes = bytes.subspan(std::size_t(n));
    }
    // In step with the writes, or fsync would find all of it still to do.
    if (cached && durable_ && offset - first >= large &&
        calls_.write_back(file_.descriptor(), first, offset - first) != 0)
      if (errno == EIO || errno == ENOSPC || errno == EDQUOT) fail(errno);  // fsync might not repeat it
  }

  /// What went wrong in a write, if anything did.
  [[nodiscard]] status failure() const {
    const int why = failed_.load(std::memory_order_acquire);
    return why == 0 ? status{} : status(system_error("cannot write", path(), why));
  }

  /// No write runs any more: the file gets its size, and is durable if it has to be.
  [[nodiscard]] status finish(std::uint64_t size) {
    if (status written = failure(); !written) return written;
    if (reserved_ != 0 && calls_.ftruncate(file_.descriptor(), size) != 0)
      return system_error("cannot cut to size", path());
    while (durable_ && calls_.fsync(file_.descriptor()) != 0)
      if (errno != EINTR) return system_error("cannot make durable", path());
    return {};
  }

  void close() noexcept {
    is_direct_.store(false, std::memory_order_relaxed);
    direct_.close();
    file_.close();
  }

 private:
  static constexpr std::uint64_t first_step = std::uint64_t{16} << 20;  ///< of reserve(), doubling
  static constexpr std::uint64_t large = std::uint64_t{1} << 20;

  void fail(int why) noexcept {
    int none = 0;
    failed_.compare_exchange_strong(none, why);
  }
  void refuse_direct(int why) {
    is_direct_.store(false, std::memory_order_release);
    shared_.refuse(shared_.direct, "O_DIRECT",
                   "blobs are written through the page cache instead, more slowly", path(), why);
  }

  file file_, direct_;
  write_shared& shared_;
  const file_calls& calls_;
  std::uint32_t alignment_ = 4096;
  std::atomic<bool> is_direct_ = false;
  std::atomic<int> failed_ = 0;
  std::uint64_t step_;
  std::uint64_t reserved_ = 0;  ///< the size that reserve() gave the file
  bool durable_;
};

}  // namespace checkrow::inline v0::detail
