// A thread of the library's own: named, and deaf to signals.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <checkrow/version.hpp>
#include <utility>

namespace checkrow::inline v0::detail {

class quiet_thread {
 public:
  quiet_thread() noexcept = default;
  quiet_thread(quiet_thread&& other) noexcept
      : thread_(other.thread_), runs_(std::exchange(other.runs_, false)) {}
  quiet_thread& operator=(quiet_thread&&) = delete;
  /// Waits for its end.
  ~quiet_thread() {
    if (runs_) ::pthread_join(thread_, nullptr);
  }

  /// Runs `body` with `context`; false where the system gives no thread. `name`: at most 15 characters.
  [[nodiscard]] bool start(const char* name, void* (*body)(void*), void* context) noexcept {
    ::sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all,
                      &before);  // inherited: the program's handlers run in its own threads
    runs_ = ::pthread_create(&thread_, nullptr, body, context) == 0;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
#if defined(__linux__)
    if (runs_) ::pthread_setname_np(thread_, name);
#else
    (void)name;
#endif
    return runs_;
  }

 private:
  ::pthread_t thread_{};
  bool runs_ = false;
};

}  // namespace checkrow::inline v0::detail
