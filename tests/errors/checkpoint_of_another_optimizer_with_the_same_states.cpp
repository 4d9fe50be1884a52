// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

// Lion has one state, which Adam has too, so only the optimizer's name tells them apart.
MISTAKE(checkpoint_of_another_optimizer_with_the_same_states, UserError) {
  const std::string path = temporary("adam.safetensors");
  compiled(plain_loss, {.optimizer = optim::Adam{}}).save(path);
  auto trainer = compiled(plain_loss, {.optimizer = optim::Lion{}});
  // error: TMP/adam.safetensors: the checkpoint is from a trainer with the optimizer Adam, this one
  // has Lion
  trainer.load(path);
}

}  // namespace tensorgrad::testing
