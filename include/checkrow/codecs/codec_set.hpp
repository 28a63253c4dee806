// Several codecs in one checkpointer: each save picks one per table at run time, by its codec_choice.
#pragma once

#include <array>
#include <checkrow/concepts.hpp>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace checkrow::inline v0 {

/// Holds one value of each codec. No two may have the same id and bits: on disk they would be one.
template <row_codec... Codecs>
class codec_set {
  static_assert(sizeof...(Codecs) > 0, "checkrow: a codec_set holds at least one codec");

 public:
  static constexpr std::size_t size = sizeof...(Codecs);
  static constexpr std::array<codec_choice, size> choices = {codec_choice{Codecs::id, Codecs::bits}...};

  constexpr codec_set() requires(std::is_default_constructible_v<Codecs>&&...) = default;
  constexpr explicit(size == 1) codec_set(Codecs... codecs) : codecs_(std::move(codecs)...) {}

  /// The choice of a table that names none.
  [[nodiscard]] static constexpr codec_choice first() noexcept { return choices[0]; }

  [[nodiscard]] static constexpr bool contains(codec_choice choice) noexcept {
    for (const codec_choice& one : choices)
      if (one == choice) return true;
    return false;
  }

  /// Calls f(codec) for the codec of that id and bits; false where there is none.
  template <class F>
  bool visit(codec_choice choice, F&& f) const {
    return std::apply(
        [&](const Codecs&... codecs) {
          return ((codec_choice(codecs) == choice && (static_cast<void>(f(codecs)), true)) || ...);
        },
        codecs_);
  }

  /// Calls f(codec) for each codec in order.
  template <class F>
  void for_each(F&& f) const {
    std::apply([&](const Codecs&... codecs) { (static_cast<void>(f(codecs)), ...); }, codecs_);
  }

 private:
  [[nodiscard]] static consteval bool distinct() noexcept {
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = i + 1; j < size; ++j)
        if (choices[i] == choices[j]) return false;
    return true;
  }
  static_assert(distinct(), "checkrow: two codecs of this codec_set have the same id and bits");

  std::tuple<Codecs...> codecs_;
};

template <class... Codecs>
codec_set(Codecs...) -> codec_set<Codecs...>;

}  // namespace checkrow::inline v0
