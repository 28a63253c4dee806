// A buffer of whole pages, as direct I/O asks for.
#pragma once

#include <checkrow/version.hpp>
#include <cstddef>
#include <cstdlib>
#include <memory>

namespace checkrow::inline v0::detail {

/// A growing buffer that starts at a page, whose bytes are not touched before they are used.
class page_buffer {
 public:
  static constexpr std::size_t page = 4096;

  [[nodiscard]] std::byte* data() const noexcept { return bytes_.get(); }
  /// At least that many bytes; what was in it is lost. False where there is no memory.
  [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
    if (bytes <= capacity_) return true;
    bytes_.reset();
    capacity_ = 0;
    const std::size_t whole = (bytes + page - 1) / page * page;
    if (whole < bytes) return false;
    bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(page, whole)));
    if (bytes_ != nullptr) capacity_ = whole;
    return bytes_ != nullptr;
  }

 private:
  struct freed {
    void operator()(std::byte* bytes) const noexcept { std::free(bytes); }
  };
  std::unique_ptr<std::byte[], freed> bytes_;
  std::size_t capacity_ = 0;
};

}  // namespace checkrow::inline v0::detail
