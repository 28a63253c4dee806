// expect: an argument of this checkpointer is none of its policies
#include <checkrow/checkpointer.hpp>
#include <checkrow/sinks/memory.hpp>
#include <checkrow/strategies/full.hpp>

#ifdef CHECKROW_FIXED
using of = checkrow::policies<checkrow::memory, checkrow::full>;
#else
using of = checkrow::policies<checkrow::memory>;  // intermittent, by default
#endif

void make() { checkrow::checkpointer<of> ckpt{checkrow::memory{}, checkrow::full{}}; }
