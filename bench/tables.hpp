// What the benchmarks of saves and restores share: a table in fresh memory, clocks, resident memory.
#pragma once

#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace bench {

using clock_type = std::chrono::steady_clock;
inline constexpr std::size_t dim = 64;
inline constexpr double giga = 1e9;

inline double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

/// Fresh pages each time; huge ones only if somebody asks for them.
class fresh_memory {
 public:
  explicit fresh_memory(std::size_t elements) : elements_(elements) {
    void* at = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) std::perror("mmap"), std::exit(1);
    data_ = static_cast<float*>(at);
  }
  fresh_memory(const fresh_memory&) = delete;
  fresh_memory& operator=(const fresh_memory&) = delete;
  ~fresh_memory() { ::munmap(data_, bytes()); }
  [[nodiscard]] std::size_t bytes() const { return elements_ * sizeof(float); }
  [[nodiscard]] float* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return elements_; }
  [[nodiscard]] float* begin() const { return data_; }
  [[nodiscard]] float* end() const { return data_ + elements_; }

 private:
  std::size_t elements_;
  float* data_;
};

struct model {
  fresh_memory weights, adagrad;
  explicit model(std::size_t rows) : weights(rows * dim), adagrad(rows) {}
  [[nodiscard]] std::size_t bytes() const { return weights.bytes() + adagrad.bytes(); }
  [[nodiscard]] std::size_t rows() const { return adagrad.size(); }
  auto attach(auto& ckpt) { return ckpt.table("t", weights, dim, {.columns = {{"adagrad", adagrad}}}); }
};

/// Sums of two uniform numbers: cheap, and no row like another.
inline void fill(model& one, std::uint64_t seed) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
  for (float& value : one.weights) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    value = (float(x & 0xffff) + float(x >> 16 & 0xffff) - 65536.0f) * 1e-6f;
  }
  for (float& value : one.adagrad) value = 0.1f;
}

inline double resident_mib(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field))
      return std::strtod(line.c_str() + std::string_view(field).size() + 1, nullptr) / 1024;
  return 0;
}
inline void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

template <class Work>
double with_threads(unsigned threads, Work&& work) {
  const auto start = clock_type::now();
  std::vector<std::thread> others;
  for (unsigned t = 0; t < threads; ++t) others.emplace_back([&, t] { work(t); });
  for (std::thread& other : others) other.join();
  return seconds_since(start);
}

}  // namespace bench
