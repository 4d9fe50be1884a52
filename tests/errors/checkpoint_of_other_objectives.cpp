// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_of_other_objectives, UserError) {
  const std::string path = temporary("other_objectives.safetensors");
  compiled(two_objectives()).save(path);
  Example good;
  // error: TMP/other_objectives.safetensors: the checkpoint is from a trainer with the objectives w
  // b, this one has one unnamed objective
  good.trainer.load(path);
}

}  // namespace tensorgrad::testing
