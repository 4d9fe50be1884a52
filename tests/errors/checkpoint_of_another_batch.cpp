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
  // error: TMP/batch.safetensors: the checkpoint is of a trainer with batches of 6 of a dataset,
  // this one has batches of 5 of a dataset: the place in the data would be another
  trainer.load(path);
}

}  // namespace tensorgrad::testing
