// expect: this codec lacks something that row_codec asks for
#include "models.hpp"

#ifdef CHECKROW_FIXED
#define WHEN_FIXED noexcept
#else
#define WHEN_FIXED
#endif

struct throwing : my_codec {
  bool decode(checkrow::column_shape, std::span<const std::byte>, std::size_t,
              checkrow::row_span) const WHEN_FIXED;
};

template struct checkrow::policies<throwing, my_sink>;
