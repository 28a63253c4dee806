// Instances of templates that checkrow.hpp tells other files not to make themselves.
#pragma once

#include <checkrow/checkrow.hpp>

#if !CHECKROW_HEADER_ONLY
namespace checkrow::inline v0::detail {

template class erased_sink<directory>;

}  // namespace checkrow::inline v0::detail
#endif
