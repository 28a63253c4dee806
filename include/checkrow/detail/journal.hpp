// Tells the observer what happens, one event at a time, and keeps the statistics of it.
#pragma once

#include <checkrow/observer.hpp>
#include <checkrow/statistics.hpp>
#include <mutex>

namespace checkrow::inline v0::detail {

class journal {
 public:
  explicit journal(observer watching) : watcher_(std::move(watching)) {}

  /// From any thread.
  void tell(const event& what) noexcept;

  /// From any thread, an observer's own call included.
  [[nodiscard]] statistics snapshot() const;

 private:
  void count(const event& what) noexcept;
  void count_end(const event& what) noexcept;

  observer watcher_;
  std::mutex telling_;  ///< one event at a time
  mutable std::mutex mutex_;
  statistics sums_;
};

}  // namespace checkrow::inline v0::detail

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/journal.hpp>
#endif
