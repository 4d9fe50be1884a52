// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_of_another_optimizer, UserError) {
  const std::string path = temporary("optimizer.safetensors");
  compiled(plain_loss, {.optimizer = optim::SGD{}}).save(path);
  auto trainer = compiled(plain_loss, {.optimizer = optim::AdamW{}});
  // error: TMP/optimizer.safetensors: the checkpoint is from a trainer with the optimizer SGD, this
  // one has AdamW
  trainer.load(path);
}

}  // namespace tensorgrad::testing
