// Built without exceptions and RTTI: the try_ forms do all that a trainer needs.
#include <checkrow/checkrow.hpp>
#include <cstdio>

static_assert(!CHECKROW_EXCEPTIONS);

namespace {

int failures = 0;
void check(bool good, const char* what) {
  if (!good) std::printf("FAILED: %s\n", what), ++failures;
}

}  // namespace

int main() {
  checkrow::memory store;
  std::vector<float> weights(100 * 8, 1.0f), again(100 * 8), bias(3, 2.0f), bias_again(3);
  std::uint64_t position = 7, position_again = 0;
  {
    checkrow::checkpointer ckpt{checkrow::exact{}, checkrow::consecutive{}, store,
                                checkrow::every{.batches = 1}};
    auto table = ckpt.try_table("users", weights, 8);
    check(table.ok() && ckpt.try_dense("bias", bias).ok() && ckpt.try_state("position", position).ok(),
          "registration");
    check(!ckpt.try_table("users", weights, 8).ok(), "a name taken is an error value");
    check(!table->try_touch(std::vector<int>{100}).ok(), "a row id out of range is an error value");
    check(ckpt.due(1), "due");
    auto saved = ckpt.try_save(1);
    check(saved.ok() && saved->try_wait().ok(), "save");
    check(table->try_touch(std::vector<int>{3, 5}).ok(), "touch");
    weights[3 * 8] = -1;
    auto second = ckpt.try_save(2);
    check(second.ok() && ckpt.try_finish().ok() && second->figures().rows == 2, "delta");
  }
  checkrow::checkpointer ckpt{checkrow::exact{}, store};
  check(ckpt.try_table("users", again, 8).ok() && ckpt.try_dense("bias", bias_again).ok() &&
            ckpt.try_state("position", position_again).ok(),
        "registration");
  const auto found = ckpt.try_restore();
  check(found.ok() && found->has_value() && (*found)->step == 2, "restore");
  check(again == weights && bias_again == bias && position_again == 7, "the restored model");

  const auto blobs = store.list();
  store.put((*blobs)[1].name, {});
  store.put((*blobs)[0].name, {});
  const auto none = ckpt.try_restore();
  check(!none.ok() && none.error().kind == checkrow::error_kind::corrupt, "damage is an error value");
  std::printf("%s\n", failures == 0 ? "all good without exceptions" : "failures");
  return failures;
}
