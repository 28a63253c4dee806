// Saves a table to a folder and restores it: what a consumer of the package does.
#include <checkrow/checkrow.hpp>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <vector>

namespace {
constexpr std::size_t rows = 100;
constexpr std::size_t dim = 8;
}  // namespace

int main() {
  std::filesystem::remove_all("consumer_checkpoints");
  const std::vector<std::uint64_t> ids{1, 42};
  {
    std::vector<float> weights(rows * dim, 0.5f);
    checkrow::checkpointer ckpt{checkrow::directory{"consumer_checkpoints"}};
    auto users = ckpt.table("users", weights, dim);
    users.touch(ids);
    weights[42 * dim] = 2.0f;
    ckpt.save(1);
    ckpt.finish();
  }
  std::vector<float> weights(rows * dim);
  checkrow::checkpointer ckpt{checkrow::directory{"consumer_checkpoints"}};
  [[maybe_unused]] auto users = ckpt.table("users", weights, dim);
  const auto found = ckpt.restore();
  if (!found || found->step != 1 || weights[42 * dim] != 2.0f || weights[0] != 0.5f) {
    std::cerr << "not what was saved\n";
    return 1;
  }
  std::cout << "checkrow " << CHECKROW_VERSION_STRING << ": saved and restored\n";
  return 0;
}
