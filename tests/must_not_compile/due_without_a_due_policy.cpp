// expect: due\(\) needs a due policy: pass every
#include <checkrow/checkpointer.hpp>
#include <checkrow/sinks/memory.hpp>

bool now(std::uint64_t step) {
#ifdef CHECKROW_FIXED
  checkrow::checkpointer ckpt{checkrow::memory{}, checkrow::every{.batches = 500}};
#else
  checkrow::checkpointer ckpt{checkrow::memory{}};
#endif
  return ckpt.due(step);
}
