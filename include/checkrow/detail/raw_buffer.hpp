// A buffer whose bytes are not touched before they are used.
#pragma once

#include <checkrow/version.hpp>
#include <cstddef>
#include <memory>

namespace checkrow::inline v0::detail {

/// Grows where more is asked for; never shrinks.
class raw_buffer {
 public:
  [[nodiscard]] std::byte* data() const noexcept { return bytes_.get(); }
  /// At least that many bytes; what was in it is lost.
  void reserve(std::size_t bytes) {
    if (bytes <= capacity_) return;
    bytes_.reset();
    bytes_.reset(new std::byte[bytes]);
    capacity_ = bytes;
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
};

}  // namespace checkrow::inline v0::detail
