// The umbrella and one checkpointer: what a trainer's main file pays.
#include <checkrow/checkrow.hpp>
#include <vector>

int main() {
  std::vector<float> weights(64 * 16);
  checkrow::checkpointer ckpt{checkrow::adaptive<4>{}, checkrow::directory{"run"},
                              checkrow::every{.batches = 500}};
  auto users = ckpt.table("users", weights, 16);
  if (auto found = ckpt.restore()) weights[0] += static_cast<float>(found->step);
  users.touch(std::vector<int>{1, 2, 3});
  if (ckpt.due(1)) ckpt.save(1);
  ckpt.finish();
}
