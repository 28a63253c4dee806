// A toy trainer that may be killed at any moment: run it again, and it goes on from its last checkpoint.
#include <checkrow/checkrow.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>

int main(int argc, char** argv) {  // [folder] [last step] [file for the final bytes]
  const std::uint64_t last = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20000;
  constexpr std::size_t rows = 5000, dim = 16;
  std::vector<float> weights(rows * dim), adagrad(rows), bias(8);
  std::uint64_t random = 42;  // the trainer's own state: where its "data" goes on

  checkrow::checkpointer ckpt{checkrow::exact{}, checkrow::intermittent{}, checkrow::every{.batches = 200},
                              checkrow::directory{argc > 1 ? argv[1] : "minimal-checkpoints"}};
  auto users = ckpt.table("users", weights, dim, {.columns = {{"adagrad", adagrad}}});
  ckpt.dense("bias", bias);
  ckpt.state("random", random);

  std::uint64_t step = 0;
  if (auto found = ckpt.restore()) step = found->step;
  std::cout << "from step " << step << std::endl;
  while (step < last) {
    std::vector<std::uint64_t> ids(32);
    for (auto& id : ids)
      id = (random = random * 6364136223846793005 + 1442695040888963407) >> 33 & (step % 3 ? 255 : 4095);
    users.touch(ids);  // before the rows are updated
    for (const auto id : ids) {
      adagrad[id] += 1;
      for (std::size_t d = 0; d < dim; ++d) weights[id * dim + d] += float(d + step % 7) / adagrad[id];
    }
    bias[step % 8] += float(step) / 3;
    if (ckpt.due(++step)) ckpt.save(step);
  }
  ckpt.finish();
  std::ofstream out(argc > 3 ? argv[3] : "/dev/null", std::ios::binary);
  for (const auto* column : {&weights, &adagrad, &bias})
    out.write(reinterpret_cast<const char*>(column->data()), std::streamsize(column->size() * sizeof(float)));
  std::cout << "done at step " << step << ", random " << random << std::endl;
}
