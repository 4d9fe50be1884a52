// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_that_is_not_there, IoError) {
  // error: TMP/nothing.safetensors: cannot be opened: no such file or directory
  Example().trainer.load(temporary("nothing.safetensors"));
}

}  // namespace tensorgrad::testing
