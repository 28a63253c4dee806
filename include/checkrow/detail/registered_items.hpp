// Dense parameters and the trainer's states as registered.
#pragma once

#include <algorithm>
#include <checkrow/element.hpp>
#include <checkrow/error.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace checkrow::inline v0::detail {

struct registered_dense {
  std::string name;
  element_type element = element_type::float32;
  std::uint8_t element_bytes = 4;
  std::uint64_t count = 0;
  std::byte* data = nullptr;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return count * element_bytes; }
};

struct registered_state {
  std::string name;
  std::optional<std::uint64_t> fixed_bytes;  ///< of a trivially copyable state
  std::function<std::vector<std::byte>()> save;
  std::function<status(std::span<const std::byte>)> load;
};

template <class T>
concept saves_itself = requires(T& state, std::span<const std::byte> bytes) {
  state.save_state();
  state.load_state(bytes);
};

template <class T>
[[nodiscard]] registered_state register_state(std::string name, T& state) {
  registered_state out{.name = std::move(name), .fixed_bytes = {}, .save = {}, .load = {}};
  if constexpr (saves_itself<T>) {
    out.save = [&state] {
      const auto saved = state.save_state();
      const auto bytes = std::as_bytes(std::span(std::ranges::data(saved), std::ranges::size(saved)));
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    out.load = [&state, where = out.name](std::span<const std::byte> bytes) -> status {
      using answer = decltype(state.load_state(bytes));
      if constexpr (std::is_convertible_v<answer, status>)
        return state.load_state(bytes);
      else if constexpr (std::is_convertible_v<answer, bool>)
        return state.load_state(bytes) ? status{}
                                       : make_error(error_kind::misuse, {"load_state() refused the bytes"},
                                                    {"state ", where}, {});
      else
        return state.load_state(bytes), status{};
    };
  } else {
    static_assert(std::is_trivially_copyable_v<T>,
                  "checkrow: a state is trivially copyable, or has save_state() -> bytes and "
                  "load_state(span<const byte>)");
    out.fixed_bytes = sizeof(T);
    out.save = [&state] {
      const auto bytes = std::as_bytes(std::span(&state, 1));
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    out.load = [&state](std::span<const std::byte> bytes) -> status {
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&state));
      return {};
    };
  }
  return out;
}

}  // namespace checkrow::inline v0::detail
