// Errors as values: what happened, where, and what to do next. Throwing calls wrap the try_ forms.
#pragma once

#include <checkrow/version.hpp>
#include <concepts>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace checkrow::inline v0 {

enum class error_kind : unsigned char {
  not_found,    ///< no such checkpoint, blob or folder
  corrupt,      ///< bytes that are not what was written
  io,           ///< the storage said no: `os_error` holds errno where there is one
  misuse,       ///< a call or a model that does not fit; nothing was changed
  unsupported,  ///< a feature, codec or option that this build does not have
  cancelled,    ///< a save that a later one ended, as options::overlap asks; its rows are still dirty
};

[[nodiscard]] constexpr const char* to_string(error_kind kind) noexcept {
  switch (kind) {
    case error_kind::not_found:
      return "not found";
    case error_kind::corrupt:
      return "corrupt";
    case error_kind::io:
      return "I/O";
    case error_kind::misuse:
      return "misuse";
    case error_kind::unsupported:
      return "unsupported";
    case error_kind::cancelled:
      return "cancelled";
  }
  return "unknown";
}

/// What went wrong. Plain value, safe to copy between threads.
struct error {
  error_kind kind = error_kind::misuse;
  std::string what;   ///< what happened: "the payload's checksum does not match"
  std::string where;  ///< the blob, table, column or path concerned; may be empty
  std::string next;   ///< what to do about it; may be empty
  int os_error = 0;   ///< errno, or 0

  /// One line: kind, what, where, what to do.
  [[nodiscard]] std::string text() const;
};

namespace detail {

/// A piece of a message: text or a number.
struct word {
  constexpr word(const char* of) noexcept : text(of) {}
  constexpr word(std::string_view of) noexcept : text(of) {}
  word(const std::string& of) noexcept : text(of) {}
  template <std::integral Number>
  constexpr word(Number of) noexcept
      : number(std::uint64_t(of)), is_number(true), is_negative(std::cmp_less(of, 0)) {}

  std::string_view text;
  std::uint64_t number = 0;
  bool is_number = false;
  bool is_negative = false;
};
using words = std::initializer_list<word>;

/// Out of line, as is all that handles an error's strings: in place they would be a good part of a program's
/// code, and of its compile time.
struct error_deleter {
  void operator()(const error* old) const noexcept;
};
using error_pointer = std::unique_ptr<error, error_deleter>;
[[nodiscard]] error_pointer keep(error&& failure);
[[nodiscard]] error_pointer keep(const error& failure);

/// What make_error returns: becomes an error, a status or a result.
struct new_error {
  error_pointer pointer;
  operator error() &&;
};

[[nodiscard]] new_error make_error(error_kind kind, words what, words where = {}, words next = {},
                                   int os_error = 0);

}  // namespace detail

/// Success, or an error. Contextually true on success. One pointer, null on success.
class [[nodiscard]] status {
 public:
  status() noexcept = default;
  status(checkrow::error&& failure) : error_(detail::keep(std::move(failure))) {}
  status(const checkrow::error& failure) : error_(detail::keep(failure)) {}
  status(detail::new_error failure) noexcept : error_(std::move(failure.pointer)) {}

  [[nodiscard]] bool ok() const noexcept { return error_ == nullptr; }
  explicit operator bool() const noexcept { return ok(); }
  /// The error; only where !ok().
  [[nodiscard]] const checkrow::error& error() const& noexcept { return *error_; }
  [[nodiscard]] checkrow::error&& error() && noexcept { return std::move(*error_); }

 private:
  detail::error_pointer error_;
};

/// A value, or an error. Contextually true where there is a value.
template <class T>
class [[nodiscard]] result {
 public:
  result(T&& value) : value_(std::move(value)) {}
  result(const T& value) : value_(value) {}
  result(checkrow::error&& failure) : failed_(std::move(failure)) {}
  result(const checkrow::error& failure) : failed_(failure) {}
  result(detail::new_error failure) noexcept : failed_(std::move(failure)) {}

  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  [[nodiscard]] T& operator*() & noexcept { return *value_; }
  [[nodiscard]] const T& operator*() const& noexcept { return *value_; }
  /// By value, so that a loop over *call() keeps what it loops over alive.
  [[nodiscard]] T operator*() && noexcept(std::is_nothrow_move_constructible_v<T>) {
    return std::move(*value_);
  }
  [[nodiscard]] T* operator->() noexcept { return &*value_; }
  [[nodiscard]] const T* operator->() const noexcept { return &*value_; }
  /// The error; only where !ok().
  [[nodiscard]] const checkrow::error& error() const& noexcept { return failed_.error(); }
  [[nodiscard]] checkrow::error&& error() && noexcept { return std::move(failed_).error(); }

 private:
  std::optional<T> value_;
  status failed_;
};

/// The base of everything that a throwing call throws.
class failure : public std::exception {
 public:
  explicit failure(checkrow::error failed) : error_(std::move(failed)), text_(error_.text()) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] const checkrow::error& error() const noexcept { return error_; }

 private:
  checkrow::error error_;
  std::string text_;
};

template <error_kind Kind>
class failure_of final : public failure {
 public:
  using failure::failure;
};
using not_found_error = failure_of<error_kind::not_found>;
using corrupt_error = failure_of<error_kind::corrupt>;
using io_error = failure_of<error_kind::io>;
using misuse_error = failure_of<error_kind::misuse>;
using unsupported_error = failure_of<error_kind::unsupported>;
using cancelled_error = failure_of<error_kind::cancelled>;

#if CHECKROW_EXCEPTIONS
/// Throws the failure type that belongs to the error's kind.
[[noreturn]] void raise(error failed);

inline void unwrap(status done) {
  if (!done) raise(std::move(done).error());
}

template <class T>
[[nodiscard]] T unwrap(result<T> done) {
  if (!done) raise(std::move(done).error());
  return *std::move(done);
}
#endif

}  // namespace checkrow::inline v0

#if CHECKROW_HEADER_ONLY
#include <checkrow/source/error.hpp>
#endif
