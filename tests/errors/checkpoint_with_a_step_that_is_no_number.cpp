// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_with_a_step_that_is_no_number, IoError) {
  const std::string path = temporary("bad_step.safetensors");
  Example example;
  example.trainer.save(path);
  StoredFile file = read_safetensors(path);
  file.metadata["tensorgrad.step"] = "-1";
  write_safetensors(path, file);
  // error: TMP/bad_step.safetensors: not a trainer checkpoint: the field 'step' is '-1'
  example.trainer.load(path);
}

}  // namespace tensorgrad::testing
