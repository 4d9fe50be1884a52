// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_of_another_number_of_steps_to_an_update, UserError) {
  const std::string path = temporary("accumulate.safetensors");
  const auto made = [](int steps) {
    return compiled(plain_loss, {.optimizer = optim::SGD{}, .accumulate = steps});
  };
  made(2).save(path);
  auto trainer = made(4);
  // error: TMP/accumulate.safetensors: the checkpoint is from a trainer with accumulate = 2, this
  // one has 4; the number of updates would differ
  trainer.load(path);
}

}  // namespace tensorgrad::testing
