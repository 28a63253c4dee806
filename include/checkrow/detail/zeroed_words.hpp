// An array of 64-bit words that starts as zero and costs memory only where it was written.
#pragma once

#include <checkrow/version.hpp>
#include <cstdint>
#include <cstdlib>
#include <utility>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

namespace checkrow::inline v0::detail {

/// Bitmaps of tables that are larger than the memory ever touched: pages come from the kernel at first write.
/// Terminates where not even address space is left, like any other allocation of the program's own state.
class zeroed_words {
 public:
  zeroed_words() noexcept = default;
  explicit zeroed_words(std::uint64_t count) : count_(count) {
    if (count == 0) return;
#if __has_include(<sys/mman.h>)
    void* at =
        ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) std::abort();
#else
    void* at = std::calloc(count, sizeof(std::uint64_t));
    if (at == nullptr) std::abort();
#endif
    words_ = static_cast<std::uint64_t*>(at);
  }
  zeroed_words(zeroed_words&& other) noexcept
      : words_(std::exchange(other.words_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  zeroed_words& operator=(zeroed_words&& other) noexcept {
    std::swap(words_, other.words_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~zeroed_words() {
    if (words_ == nullptr) return;
#if __has_include(<sys/mman.h>)
    ::munmap(words_, bytes());
#else
    std::free(words_);
#endif
  }

  /// More words, the new ones zero. Pages that were never written stay unbacked.
  void grow(std::uint64_t count) {
    zeroed_words larger(count);
    for (std::uint64_t i = 0; i < count_; ++i)
      if (words_[i] != 0) larger[i] = words_[i];
    *this = std::move(larger);
  }

  [[nodiscard]] std::uint64_t& operator[](std::uint64_t i) const noexcept { return words_[i]; }
  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }

 private:
  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(std::uint64_t); }

  std::uint64_t* words_ = nullptr;
  std::uint64_t count_ = 0;
};

}  // namespace checkrow::inline v0::detail
