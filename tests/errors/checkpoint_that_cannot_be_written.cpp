// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_that_cannot_be_written, IoError) {
  // error: TMP/no_folder/model.safetensors: cannot be written: no such file or directory
  Example().trainer.save(temporary("no_folder/model.safetensors"));
}

}  // namespace tensorgrad::testing
