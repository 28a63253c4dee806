// Calls into the user's code, whose exceptions become errors.
#pragma once

#include <cerrno>
#include <checkrow/error.hpp>
#include <new>
#include <type_traits>

namespace checkrow::inline v0::detail {

#if CHECKROW_EXCEPTIONS
/// The error of the exception being handled. (Out of line, or every guarded call would hold all of this.)
[[nodiscard, gnu::noinline]] inline new_error caught(const char* whose, const std::string& where) {
  try {
    throw;
  } catch (const failure& known) {
    return {error_pointer(new error(known.error()))};
  } catch (const std::bad_alloc&) {
    return make_error(error_kind::io, {"the system has no memory left for ", whose}, {where},
                      {"free some memory"}, ENOMEM);
  } catch (const std::exception& thrown) {
    return make_error(error_kind::misuse, {whose, " threw: ", thrown.what()}, {where}, {"mend that code"});
  } catch (...) {
    return make_error(error_kind::misuse, {whose, " threw something"}, {where}, {"mend that code"});
  }
}
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
