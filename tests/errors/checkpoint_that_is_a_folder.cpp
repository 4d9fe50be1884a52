// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_that_is_a_folder, IoError) {
  // error: TMP/: cannot be written: it exists and is not a regular file
  Example().trainer.save(temporary(""));
}

}  // namespace tensorgrad::testing
