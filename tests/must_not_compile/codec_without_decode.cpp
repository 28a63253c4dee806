// expect: this codec lacks something that row_codec asks for
#include "models.hpp"

struct write_only {
  static constexpr std::uint16_t id = 0x8003;
  static constexpr std::uint8_t bits = 32;
  static constexpr std::string_view name = "write only";
  static constexpr std::uint32_t version = 1;
  bool accepts(checkrow::column_shape) const noexcept;
  std::size_t bound(checkrow::column_shape, std::size_t) const noexcept;
  std::size_t encode(checkrow::column_shape, checkrow::row_view, std::size_t, std::byte*) const noexcept;
#ifdef CHECKROW_FIXED
  bool decode(checkrow::column_shape, std::span<const std::byte>, std::size_t,
              checkrow::row_span) const noexcept;
#endif
};

template struct checkrow::policies<write_only, my_sink>;
