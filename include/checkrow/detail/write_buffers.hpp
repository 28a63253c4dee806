// The memory that blobs are written from, kept from one blob to the next, and what writers of a sink share.
#pragma once

#include <sys/mman.h>

#include <checkrow/detail/guarded.hpp>
#include <checkrow/error.hpp>
#include <checkrow/huge_pages.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace checkrow::inline v0::detail {

/// Memory at a page's address, or none. Large memory lies on huge pages where there are any: a direct write
/// pins each page, and thousands of small ones cost more than the copy into them.
class page_memory {
 public:
  page_memory() noexcept = default;
  explicit page_memory(std::size_t bytes) noexcept
      : bytes_(bytes), whole_(bytes < huge ? bytes : bytes + huge) {
    void* const got = ::mmap(nullptr, whole_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return;
    base_ = static_cast<std::byte*>(got);
    if (bytes < huge) return;
    start_ = (huge - reinterpret_cast<std::uintptr_t>(got) % huge) % huge;
    advise_huge_pages(data(), bytes);
  }
  page_memory(page_memory&& other) noexcept { swap(other); }
  page_memory& operator=(page_memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~page_memory() {
    if (base_ != nullptr) ::munmap(base_, whole_);
  }
  explicit operator bool() const noexcept { return base_ != nullptr; }
  [[nodiscard]] std::byte* data() const noexcept { return base_ + start_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t huge = std::size_t{2} << 20;
  void swap(page_memory& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    std::swap(whole_, other.whole_);
    std::swap(start_, other.start_);
  }

  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0, whole_ = 0, start_ = 0;
};

/// Shared by the copies of one sink and their writers. Thread-safe.
class write_shared {
 public:
  /// Empty where the system has no memory left.
  [[nodiscard]] page_memory take(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      while (!idle_.empty()) {
        page_memory last = std::move(idle_.back());
        idle_.pop_back();
        if (last.bytes() == bytes) return last;
      }
    }
    return page_memory(bytes);
  }
  /// Keeps it for the next blob, unless `most` are kept already.
  void give(page_memory memory, std::size_t most) noexcept {
    const std::lock_guard lock(mutex_);
    if (memory && idle_.size() < most) swallowed([&] { idle_.push_back(std::move(memory)); });
  }

  /// `what` did not work here: `fallback` is done instead, by later blobs too. Told once.
  void refuse(bool& which, const char* what, const char* fallback, const std::string& path,
              int why) noexcept {
    const std::lock_guard lock(mutex_);
    if (std::exchange(which, true)) return;
    swallowed([&] {
      notes_.push_back(make_error(error_kind::unsupported, {what, " is refused: ", std::strerror(why)},
                                  {path}, {fallback}, why));
    });
  }
  [[nodiscard]] bool refused(const bool& which) const {
    const std::lock_guard lock(mutex_);
    return which;
  }
  [[nodiscard]] std::vector<error> take_notes() {
    const std::lock_guard lock(mutex_);
    return std::exchange(notes_, {});
  }

  bool direct = false, uring = false;  ///< refused; by refuse() and refused() only

 private:
  mutable std::mutex mutex_;
  std::vector<page_memory> idle_;
  std::vector<error> notes_;
};

}  // namespace checkrow::inline v0::detail
