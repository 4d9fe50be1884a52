// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_of_another_batch, UserError) {
  const std::string path = temporary("batch.safetensors");
  const auto made = [](std::int64_t batch) {
    return compiled(
        plain_loss,
        {.dataset = {{"x", {20, 3}}, {"y", {20, 2}}}, .batch = batch, .optimizer = optim::SGD{}});
  };
  made(6).save(path);
  auto trainer = made(5);
  // error: TMP/batch.safetensors: the checkpoint is from a trainer with batches of 6 from a
  // dataset, this one has batches of 5 from a dataset; the position in the data would differ
  trainer.load(path);
}

}  // namespace tensorgrad::testing
