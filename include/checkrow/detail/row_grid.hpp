// How the grids of rows are found: what a search is given and proposes.
#pragma once

#include <checkrow/detail/canonical.hpp>
#include <cstdint>

namespace checkrow::inline v0::detail {

/// Asymmetric rows have an offset, symmetric rows a scale only.
enum class row_grid : std::uint8_t { asymmetric, symmetric };

CHECKROW_CANONICAL_BEGIN

/// Least and greatest element (-0 < +0) and the greatest magnitude, on bits: NaN counts as beyond infinity.
struct row_range {
  float min = 0;
  float max = 0;
  std::uint32_t magnitude = 0;
};

/// A narrow grid. `scale` is the code of `step`, 1 to scale_limit.
struct narrow_grid {
  float step = 0;
  int scale = 0;
  int offset = 0;
  int granularity = 1;
  bool valid = false;
};

CHECKROW_CANONICAL_END

/// Which rows an engine plans many at once: by their min and max, by the refit search, or none.
enum class batch_kind : std::uint8_t { uniform, refit, none };

/// A grid search whose type is forgotten; without `propose` there is none.
struct row_search {
  const void* policy = nullptr;
  narrow_grid (*propose)(const void* policy, const float_row& row, const row_range& range,
                         int bits) noexcept = nullptr;
};

}  // namespace checkrow::inline v0::detail
