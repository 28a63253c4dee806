// What a run says while it trains: one line that is rewritten on a terminal, plain lines elsewhere.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "evaluate.hpp"

namespace dlrm {

/// 1234567 as "1,234,567".
[[nodiscard]] inline std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3;) text.insert(i -= 3, ",");
  return text;
}

/// Bytes as "12.3 MB" (10^6).
[[nodiscard]] inline std::string megabytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

/// As a last step: until the log ends.
inline constexpr std::uint64_t until_the_end = ~std::uint64_t{0} >> 1;

/// Collects predictions from any number of threads. Loss and AUC are those of the last `window` training
/// samples, each scored before it was trained on, so they are honest, if a little behind.
class progress {
 public:
  static constexpr std::size_t window = 16384;

  /// `columns` is the terminal's width, 0 where `out` is none.
  progress(std::FILE* out, std::size_t columns, std::uint64_t last_step)
      : out_(out), columns_(columns), last_step_(last_step), start_(clock::now()), shown_(start_) {}

  /// One batch was trained.
  void trained(std::span<const float> logits, std::span<const float> labels) {
    const std::lock_guard lock(mutex_);
    samples_ += labels.size();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (logits_.size() < window) {
        logits_.push_back(logits[i]);
        labels_.push_back(labels[i]);
      } else {
        logits_[next_] = logits[i];
        labels_[next_] = labels[i];
      }
      next_ = (next_ + 1) % window;
    }
  }

  /// A checkpoint was saved: its bytes, how long the trainer stood still for it, and how far its embedding
  /// rows are from the trained ones: the mean of ||saved - row|| / ||row||, 0 where nothing is lost.
  void saved(std::uint64_t step, std::uint64_t bytes, double stall_ms, double error) {
    char text[96];
    const int size = std::snprintf(text, sizeof text, "  saved at %s: %s, stall %.2f ms",
                                   with_commas(step).c_str(), megabytes(bytes).c_str(), stall_ms);
    if (error > 0)
      std::snprintf(text + size, sizeof text - static_cast<std::size_t>(size), ", error %.2f %%",
                    100 * error);
    const std::lock_guard lock(mutex_);
    checkpoint_ = text;
  }

  /// Prints where training stands, if it is time: four times a second on a terminal, else only when `now`.
  void show(std::uint64_t step, bool now) {
    const std::lock_guard lock(mutex_);
    const auto since = clock::now() - shown_;
    if (columns_ > 0 ? !now && since < std::chrono::milliseconds(250) : !now) return;
    shown_ = clock::now();
    const std::string of = last_step_ == until_the_end ? "" : "/" + with_commas(last_step_);
    char text[256];
    const int size = std::snprintf(text, sizeof text, "step %s%s  loss %.4f  AUC %.4f  %s samples/s%s",
                                   with_commas(step).c_str(), of.c_str(), loss(), auc(logits_, labels_),
                                   with_commas(static_cast<std::uint64_t>(samples_per_second())).c_str(),
                                   checkpoint_.c_str());
    const std::string line(text, static_cast<std::size_t>(std::clamp(size, 0, int{sizeof text} - 1)));
    if (columns_ > 0)
      std::fprintf(out_, "\r%s\x1b[K",  // over the line before; clear what it leaves; never wrap
                   line.substr(0, columns_ - 1).c_str());
    else
      std::fprintf(out_, "%s\n", line.c_str());
    std::fflush(out_);
  }

  /// Leaves the progress line standing, so that other output can follow.
  void end_line() {
    const std::lock_guard lock(mutex_);
    if (columns_ > 0 && samples_ > 0) std::fprintf(out_, "\n");
  }

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(clock::now() - start_).count();
  }
  [[nodiscard]] double samples_per_second() const { return static_cast<double>(samples_) / seconds(); }

 private:
  using clock = std::chrono::steady_clock;

  [[nodiscard]] double loss() const {
    double sum = 0;
    for (std::size_t i = 0; i < logits_.size(); ++i)
      sum += cross_entropy(static_cast<double>(logits_[i]), static_cast<double>(labels_[i]));
    return sum / static_cast<double>(logits_.size());
  }

  std::FILE* out_;
  std::size_t columns_;
  std::uint64_t last_step_;
  clock::time_point start_, shown_;
  std::mutex mutex_;
  std::vector<float> logits_, labels_;  ///< a ring of the last predictions
  std::size_t next_ = 0;
  std::uint64_t samples_ = 0;
  std::string checkpoint_;
};

}  // namespace dlrm
