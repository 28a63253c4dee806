// The object of detail/file_calls.hpp that every directory starts with.
#pragma once

#include <checkrow/detail/file_calls.hpp>

namespace checkrow::inline v0::detail {

CHECKROW_INLINE constexpr file_calls system_calls{};

}  // namespace checkrow::inline v0::detail
