// Shared by the fuzz targets. A target reads its input, calls require() for what must hold, and makes its own
// seeds: `fuzz_TARGET --seeds FOLDER` writes them, from blobs that the library has just written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace fuzz {

using bytes = std::vector<std::byte>;
using input_bytes = std::span<const std::byte>;

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// Numbers off the front of an input; zeros where it has ended.
class input {
 public:
  input(const std::uint8_t* data, std::size_t size) : left_(std::as_bytes(std::span(data, size))) {}

  template <class T>
  [[nodiscard]] T take() {
    T value{};
    const std::size_t size = std::min(sizeof value, left_.size());
    std::memcpy(&value, left_.data(), size);
    left_ = left_.subspan(size);
    return value;
  }
  [[nodiscard]] input_bytes rest() const { return left_; }

 private:
  input_bytes left_;
};

/// On the heap, of exactly that size, so that the sanitizer sees one byte too many.
class exact_buffer {
 public:
  explicit exact_buffer(std::size_t size, std::byte fill = std::byte{0xa5})
      : size_(size), data_(new std::byte[size]) {
    std::fill_n(data_.get(), size, fill);
  }
  explicit exact_buffer(input_bytes from) : exact_buffer(from.size()) {
    std::copy(from.begin(), from.end(), data_.get());
  }
  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool operator==(const exact_buffer& other) const {
    return size_ == other.size_ && std::equal(data(), data() + size_, other.data());
  }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> data_;
};

template <class T>
requires std::is_trivially_copyable_v<T>
void append(bytes& to, const T& value) {
  const auto from = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), from.begin(), from.end());
}
inline void append(bytes& to, input_bytes from) { to.insert(to.end(), from.begin(), from.end()); }

/// Writes the seeds of a target, one a file.
class seed_folder {
 public:
  explicit seed_folder(std::string path) : path_(std::move(path)) {}

  void add(input_bytes seed) {
    const std::string name = path_ + "/seed-" + std::to_string(count_++);
    std::FILE* const file = std::fopen(name.c_str(), "wb");
    require(file != nullptr, "the seeds' folder can be written to");
    require(std::fwrite(seed.data(), 1, seed.size(), file) == seed.size(), "a seed can be written");
    std::fclose(file);
  }

 private:
  std::string path_;
  int count_ = 0;
};

/// Each target defines it.
void make_seeds(seed_folder& folder);

}  // namespace fuzz

// Emitted, since libFuzzer asks for it by name.
extern "C" [[gnu::used]] inline int LLVMFuzzerInitialize(int* count, char*** words) {
  if (*count != 3 || std::strcmp((*words)[1], "--seeds") != 0) return 0;
  fuzz::seed_folder folder((*words)[2]);
  fuzz::make_seeds(folder);
  std::exit(0);
}
