// A buffer of whole pages, as direct I/O asks for.
#pragma once

#include <checkrow/huge_pages.hpp>

namespace checkrow::inline v0::detail {

/// A growing buffer that starts at a page, whose bytes are not touched before they are used. Its memory is
/// the kernel's again once it is gone, not an allocator's.
class page_buffer {
 public:
  static constexpr std::size_t page = 4096;

  page_buffer() noexcept = default;
  page_buffer(const page_buffer&) = delete;
  page_buffer& operator=(const page_buffer&) = delete;
  ~page_buffer() { release(); }

  [[nodiscard]] std::byte* data() const noexcept { return bytes_; }
  /// At least that many bytes; what was in it is lost. False where there is no memory.
  [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
    if (bytes <= capacity_) return true;
    const std::size_t whole = (bytes + page - 1) / page * page;
    if (whole < bytes) return false;
    release();
#if __has_include(<sys/mman.h>)
    void* const at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return false;
#else
    void* const at = std::aligned_alloc(page, whole);
    if (at == nullptr) return false;
#endif
    bytes_ = static_cast<std::byte*>(at);
    capacity_ = whole;
    advise_huge_pages(bytes_, capacity_);
    return true;
  }

 private:
  void release() noexcept {
    if (bytes_ == nullptr) return;
#if __has_include(<sys/mman.h>)
    ::munmap(bytes_, capacity_);
#else
    std::free(bytes_);
#endif
    bytes_ = nullptr;
    capacity_ = 0;
  }

  std::byte* bytes_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace checkrow::inline v0::detail
