// Hogwild: threads read and write the same parameters without locks, and a lost update is accepted.
//
// Every such access goes through the functions here, and nothing else in this folder races. They are plain
// loads and stores, which compilers turn into vectors; under ThreadSanitizer they are relaxed atomics, so
// that it stays silent about the intended races and still finds any other.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#define DLRM_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DLRM_THREAD_SANITIZER 1
#endif
#endif

namespace dlrm::shared {

template <class T>
[[nodiscard]] inline T load(const T& from) noexcept {
#ifdef DLRM_THREAD_SANITIZER
  return std::atomic_ref<T>(const_cast<T&>(from)).load(std::memory_order_relaxed);
#else
  return from;
#endif
}

template <class T>
inline void store(T& to, T value) noexcept {
#ifdef DLRM_THREAD_SANITIZER
  std::atomic_ref<T>(to).store(value, std::memory_order_relaxed);
#else
  to = value;
#endif
}

/// Copies shared parameters to memory of this thread.
template <class T>
inline void copy(const T* from, std::size_t count, T* to) noexcept {
  for (std::size_t i = 0; i < count; ++i) to[i] = load(from[i]);
}

/// Adagrad, one accumulator an element: for the dense part.
template <class T>
inline void adagrad(T* weights, T* accumulators, const T* gradient, std::size_t count, T rate) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const T sum = load(accumulators[i]) + gradient[i] * gradient[i];
    store(accumulators[i], sum);
    store(weights[i], load(weights[i]) - rate * gradient[i] / (std::sqrt(sum) + T(1e-8)));
  }
}

/// Row-wise Adagrad, one accumulator a row: it gathers the mean square of the row's gradient.
template <class T>
inline void row_wise_adagrad(T* row, T& accumulator, const T* gradient, std::size_t dim, T rate) noexcept {
  T squares[8] = {};  // eight sums side by side: a vector, in an order that no compiler changes. dim % 8 == 0
  for (std::size_t i = 0; i < dim; i += 8)
    for (std::size_t k = 0; k < 8; ++k) squares[k] += gradient[i + k] * gradient[i + k];
  T sum = 0;
  for (const T square : squares) sum += square;
  const T gathered = load(accumulator) + sum / static_cast<T>(dim);
  store(accumulator, gathered);
  const T scale = rate / (std::sqrt(gathered) + T(1e-8));
  for (std::size_t i = 0; i < dim; ++i) store(row[i], load(row[i]) - scale * gradient[i]);
}

}  // namespace dlrm::shared
