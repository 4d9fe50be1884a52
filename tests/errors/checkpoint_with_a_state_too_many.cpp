// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_with_a_state_too_many, UserError) {
  const std::string path = temporary("averages.safetensors");
  compiled(plain_loss, {.optimizer = optim::SGD{}, .ema_decay = 0.5}).save(path);
  auto trainer = compiled(plain_loss, {.optimizer = optim::SGD{}});
  // error: TMP/averages.safetensors: the checkpoint has a state 'optim.ema/fc.bias', this trainer
  // does not
  trainer.load(path);
}

}  // namespace tensorgrad::testing
