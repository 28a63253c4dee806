// Everything on the host: include this, or only what you use.
#pragma once

#include <checkrow/capture/stop_and_copy.hpp>
#include <checkrow/checkpointer.hpp>
#include <checkrow/codecs/builtin.hpp>
#include <checkrow/due.hpp>
#include <checkrow/half.hpp>
#include <checkrow/huge_pages.hpp>
#include <checkrow/observer.hpp>
#include <checkrow/options.hpp>
#include <checkrow/restore.hpp>
#include <checkrow/sinks/directory.hpp>
#include <checkrow/sinks/memory.hpp>
#include <checkrow/sinks/throttled.hpp>
#include <checkrow/strategies/consecutive.hpp>
#include <checkrow/strategies/full.hpp>
#include <checkrow/strategies/intermittent.hpp>
#include <checkrow/strategies/one_shot.hpp>
#include <checkrow/table.hpp>
#include <checkrow/ticket.hpp>
#include <checkrow/trackers/bitmap.hpp>

#if !CHECKROW_HEADER_ONLY
namespace checkrow::inline v0::detail {

extern template class erased_sink<directory>;  // a third of a second a file

}  // namespace checkrow::inline v0::detail
#endif
