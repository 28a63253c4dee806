// Calls into the user's code, whose exceptions become errors.
#pragma once

#include <checkrow/error.hpp>
#include <type_traits>

namespace checkrow::inline v0::detail {

#if CHECKROW_EXCEPTIONS
/// The error of the exception being handled. (Out of line, or every guarded call would hold all of this.)
[[nodiscard]] new_error caught(const char* whose, const std::string& where);
#endif

/// Runs `call` and returns its result; what it throws becomes an error: of memory, or a misuse error that
/// says whose code threw. `where` is a string, or what makes one if it comes to that.
template <class Where = std::string, class Call>
[[nodiscard]] auto guarded_result(const char* whose, const Where& where, Call&& call) -> decltype(call()) {
#if CHECKROW_EXCEPTIONS
  try {
    return call();
  } catch (...) {
    if constexpr (std::is_invocable_v<const Where&>)
      return caught(whose, where());
    else
      return caught(whose, where);
  }
#else
  (void)whose, (void)where;
  return call();
#endif
}

template <class Where = std::string, class Call>
[[nodiscard]] status guarded(const char* whose, const Where& where, Call&& call) {
  return guarded_result(whose, where, [&]() -> status { return call(); });
}

/// Runs `call` and drops what it throws.
template <class Call>
void swallowed(Call&& call) noexcept {
#if CHECKROW_EXCEPTIONS
  try {
    call();
  } catch (...) {  // an observer's own fault must not harm the save that it watches
  }
#else
  call();
#endif
}

}  // namespace checkrow::inline v0::detail

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/guarded.hpp>
#endif
