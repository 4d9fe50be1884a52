// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_of_an_optimizer_with_other_options, UserError) {
  const std::string path = temporary("decay.safetensors");
  compiled(plain_loss, {.optimizer = optim::SGD{}}).save(path);
  auto trainer = compiled(plain_loss, {.optimizer = optim::SGD{.weight_decay = 0.5}});
  // error: TMP/decay.safetensors: the checkpoint is from another optimizer or other options: it has
  // no value for 'weight_decay', this trainer needs one
  trainer.load(path);
}

}  // namespace tensorgrad::testing
