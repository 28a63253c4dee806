// Bodies of error.hpp: an error's strings, and what is thrown for it.
#pragma once

#include <checkrow/error.hpp>

namespace checkrow::inline v0 {

CHECKROW_INLINE std::string error::text() const {
  std::string out = std::string("checkrow: ") + to_string(kind) + ": " + what;
  if (!where.empty()) out += " [" + where + "]";
  if (!next.empty()) out += "; " + next;
  return out;
}

namespace detail {

[[nodiscard, gnu::noinline]] inline std::string join(words pieces) {
  std::string out;
  for (const word& piece : pieces)
    if (!piece.is_number)
      out += piece.text;
    else
      out += piece.is_negative ? std::to_string(std::int64_t(piece.number)) : std::to_string(piece.number);
  return out;
}

[[gnu::noinline]] CHECKROW_INLINE void error_deleter::operator()(const error* old) const noexcept {
  delete old;
}

[[gnu::noinline]] CHECKROW_INLINE error_pointer keep(error&& failure) {
  return error_pointer(new error(std::move(failure)));
}
[[gnu::noinline]] CHECKROW_INLINE error_pointer keep(const error& failure) {
  return error_pointer(new error(failure));
}

[[gnu::noinline]] CHECKROW_INLINE new_error::operator error() && { return std::move(*pointer); }

[[gnu::noinline]] CHECKROW_INLINE new_error make_error(error_kind kind, words what, words where, words next,
                                                       int os_error) {
  return {error_pointer(new error{kind, join(what), join(where), join(next), os_error})};
}

}  // namespace detail

#if CHECKROW_EXCEPTIONS
CHECKROW_INLINE void raise(error failed) {
  switch (failed.kind) {
    case error_kind::not_found:
      throw not_found_error(std::move(failed));
    case error_kind::corrupt:
      throw corrupt_error(std::move(failed));
    case error_kind::io:
      throw io_error(std::move(failed));
    case error_kind::unsupported:
      throw unsupported_error(std::move(failed));
    case error_kind::cancelled:
      throw cancelled_error(std::move(failed));
    case error_kind::misuse:
      break;
  }
  throw misuse_error(std::move(failed));
}
#endif

}  // namespace checkrow::inline v0
