// Direct writes through an io_uring: no threads, and as many writes at once as there are buffers. Empty
// unless CHECKROW_LIBURING is defined, for the whole program; it then needs liburing.
#pragma once

#if defined(CHECKROW_LIBURING)

#include <liburing.h>

#include <checkrow/detail/write_engine.hpp>
#include <memory>

namespace checkrow::inline v0::detail {

class writer_uring final : public write_engine {
 public:
  /// Null where the kernel refuses (seccomp, sysctl, limits); the sink notes it.
  [[nodiscard]] static std::unique_ptr<write_engine> start(blob_file& to, std::uint32_t depth) {
    write_shared& shared = to.shared();
    if (shared.refused(shared.uring)) return nullptr;
    std::unique_ptr<writer_uring> made(new writer_uring(to));
    int refused = to.calls().uring_refused();
    if (refused == 0) refused = -::io_uring_queue_init(depth, &made->ring_, 0);
    if (refused != 0) {
      shared.refuse(shared.uring, "io_uring", "blobs are written by threads instead", to.path(), refused);
      return nullptr;
    }
    made->ready_ = true;
    made->slots_.resize(depth);
    return made;
  }
  writer_uring(const writer_uring&) = delete;
  writer_uring& operator=(const writer_uring&) = delete;
  ~writer_uring() override {
    while (in_flight_ != 0) (void)reap();
    if (ready_) ::io_uring_queue_exit(&ring_);
  }

  /// Whole blocks go through the ring; a blob's last bytes, and all once the file is no longer direct, here.
  void submit(filled_buffer buffer) override {
    const std::size_t part = to_.direct_part(buffer.offset, buffer.bytes);
    ::io_uring_sqe* const entry = part == 0 ? nullptr : ::io_uring_get_sqe(&ring_);
    std::size_t slot = 0;
    while (slot < slots_.size() && slots_[slot].memory) ++slot;
    if (entry == nullptr || slot == slots_.size()) {
      write_here(std::move(buffer));
      return;
    }
    const std::size_t asked = to_.calls().uring_bytes(part);
    ::io_uring_prep_write(entry, to_.direct_descriptor(), buffer.memory.data(), unsigned(asked),
                          buffer.offset);
    ::io_uring_sqe_set_data64(entry, slot);
    int submitted = 0;
    do submitted = ::io_uring_submit(&ring_);
    while (submitted == -EINTR);
    if (submitted > 0) {
      slots_[slot] = std::move(buffer);
      ++in_flight_;
      return;
    }
    ::io_uring_prep_nop(entry);  // the kernel may still take it, later
    ::io_uring_sqe_set_data64(entry, nobody);
    write_here(std::move(buffer));
  }

  [[nodiscard]] page_memory reclaim(bool wait) override {
    while (in_flight_ != 0 && (::io_uring_cq_ready(&ring_) != 0 || (wait && written_.empty()))) {
      page_memory one = reap();
      if (one) written_.push_back(std::move(one));
    }
    if (written_.empty()) return {};
    page_memory last = std::move(written_.back());
    written_.pop_back();
    return last;
  }

 private:
  explicit writer_uring(blob_file& to) : to_(to) {}

  static constexpr std::uint64_t nobody = ~std::uint64_t{0};

  void write_here(filled_buffer buffer) {
    to_.write(buffer.offset, {buffer.memory.data(), buffer.bytes});
    written_.push_back(std::move(buffer.memory));
  }

  /// Waits for one completion. What it has not written is written here, and a refusal or a failure shows
  /// again there: a request may also come back undone because the thread that submitted it has ended.
  [[nodiscard]] page_memory reap() {
    ::io_uring_cqe* done = nullptr;
    if (::io_uring_wait_cqe(&ring_, &done) != 0) return {};  // interrupted: the caller comes again
    const std::uint64_t slot = ::io_uring_cqe_get_data64(done);
    const int result = to_.calls().uring_result(done->res);
    ::io_uring_cqe_seen(&ring_, done);
    if (slot == nobody) return {};
    filled_buffer buffer = std::exchange(slots_[slot], {});
    --in_flight_;
    const std::size_t written = result > 0 ? std::size_t(result) : 0;
    if (written < buffer.bytes)
      to_.write(buffer.offset + written, {buffer.memory.data() + written, buffer.bytes - written});
    return std::move(buffer.memory);
  }

  blob_file& to_;
  ::io_uring ring_{};
  bool ready_ = false;
  std::uint32_t in_flight_ = 0;
  std::vector<filled_buffer> slots_;
  std::vector<page_memory> written_;
};

}  // namespace checkrow::inline v0::detail

#endif
