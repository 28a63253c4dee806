// The least that makes a codec and a sink, for the cases beside this file.
#pragma once

#include <checkrow/policies.hpp>

struct my_codec {
  static constexpr std::uint16_t id = 0x8001;
  static constexpr std::uint8_t bits = 32;
  static constexpr std::string_view name = "mine";
  static constexpr std::uint32_t version = 1;
  bool accepts(checkrow::column_shape) const noexcept { return true; }
  std::size_t bound(checkrow::column_shape shape, std::size_t n) const noexcept {
    return n * shape.row_bytes();
  }
  std::size_t encode(checkrow::column_shape, checkrow::row_view, std::size_t, std::byte*) const noexcept;
  bool decode(checkrow::column_shape, std::span<const std::byte>, std::size_t,
              checkrow::row_span) const noexcept;
};
static_assert(checkrow::row_codec<my_codec>);

struct other_codec : my_codec {
  static constexpr std::uint16_t id = 0x8002;
};

struct my_sink {
  struct writer {
    checkrow::status append(std::span<const std::byte>);
    checkrow::status commit();
    void abandon() noexcept;
  };
  struct reader {
    std::uint64_t bytes() const noexcept;
    checkrow::status read(std::uint64_t, std::span<std::byte>);
  };
  checkrow::result<writer> create(std::string_view);
  checkrow::result<reader> open(std::string_view);
  checkrow::result<std::vector<checkrow::blob>> list();
  checkrow::status remove(std::string_view);
  std::string where();
};
static_assert(checkrow::sink<my_sink>);
