// Appends of any size become large aligned writes that go on behind the caller's back.
#pragma once

#include <checkrow/detail/write_engine.hpp>
#include <checkrow/detail/write_uring.hpp>
#include <cstring>
#include <memory>

namespace checkrow::inline v0::detail {

/// Used by one thread at a time. A blob below one buffer's size is written in one piece by finish(), without
/// threads or a second descriptor.
class write_behind {
 public:
  write_behind(file opened, std::shared_ptr<write_shared> shared, const write_options& options, bool durable)
      : shared_(std::move(shared)),
        options_(options),
        buffer_bytes_(options.rounded_buffer()),
        buffers_(std::max(options.buffers, 1u)),
        file_(std::move(opened), *shared_, options, durable) {}
  write_behind(const write_behind&) = delete;
  write_behind& operator=(const write_behind&) = delete;
  ~write_behind() { close(); }

  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }

  /// Copies the bytes; waits only where every buffer is full. Tells of a write that failed before.
  [[nodiscard]] status append(std::span<const std::byte> bytes) {
    if (status written = file_.failure(); !written) return written;
    while (!bytes.empty()) {
      if (!current_)
        if (status got = next_buffer(); !got) return got;
      const std::size_t n = std::min(bytes.size(), buffer_bytes_ - filled_);
      std::memcpy(current_.data() + filled_, bytes.data(), n);
      filled_ += n;
      bytes = bytes.subspan(n);
      if (filled_ == buffer_bytes_) submit();
    }
    return {};
  }

  /// Bytes in buffers on their way to the disk: a ring's full ones, some of which may be there by now.
  [[nodiscard]] std::uint64_t queued_bytes() const noexcept {
    return in_flight_ * std::uint64_t{buffer_bytes_};
  }

  /// Writes what is left, waits for every write, and makes the file durable if it has to be.
  [[nodiscard]] status finish() {
    if (engine_ == nullptr)
      file_.write(0, {current_.data(), filled_});
    else if (filled_ != 0)
      submit();
    const std::uint64_t size = engine_ == nullptr ? filled_ : position_;
    drain();
    return file_.finish(size);
  }

  /// Waits for the writes that run, and gives everything back.
  void close() noexcept {
    drain();
    if (current_) shared_->give(std::move(current_), buffers_);
    current_ = {};
    file_.close();
  }

 private:
  [[nodiscard]] status next_buffer() {
    if (engine_ != nullptr && in_flight_ != 0) current_ = engine_->reclaim(in_flight_ == buffers_);
    if (current_)
      --in_flight_;
    else
      current_ = shared_->take(buffer_bytes_);
    filled_ = 0;
    if (current_) return {};
    return make_error(error_kind::io, {"no memory for a buffer of ", buffer_bytes_, " bytes"}, {path()},
                      {"write with fewer or smaller buffers"}, ENOMEM);
  }

  void submit() {
    if (engine_ == nullptr) {
      if (options_.direct) file_.go_direct(buffer_bytes_);
      start();
    }
#if defined(CHECKROW_LIBURING)
    if (by_uring_ && !file_.is_direct()) {  // refused by a write
      drain();
      start();
    }
#endif
    file_.reserve(position_ + filled_);
    engine_->submit({std::move(current_), filled_, position_});
    ++in_flight_;
    position_ += filled_;
    filled_ = 0;
  }

  void start() {
#if defined(CHECKROW_LIBURING)
    by_uring_ = false;
    if (options_.uring && file_.is_direct()) engine_ = writer_uring::start(file_, buffers_);
    by_uring_ = engine_ != nullptr;
    if (by_uring_) return;
#endif
    engine_ = std::make_unique<writer_threads>(file_, std::clamp(options_.threads, 1u, buffers_), buffers_);
  }

  void drain() noexcept {
    for (; in_flight_ != 0; --in_flight_) shared_->give(engine_->reclaim(true), buffers_);
    engine_.reset();
  }

  std::shared_ptr<write_shared> shared_;
  write_options options_;
  std::size_t buffer_bytes_;
  std::uint32_t buffers_;
  blob_file file_;
  page_memory current_;
  std::size_t filled_ = 0;       ///< bytes of it
  std::uint64_t position_ = 0;   ///< bytes submitted before them
  std::uint32_t in_flight_ = 0;  ///< buffers that the engine has
#if defined(CHECKROW_LIBURING)
  bool by_uring_ = false;
#endif
  std::unique_ptr<write_engine> engine_;
};

}  // namespace checkrow::inline v0::detail
