// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_with_a_schedule_that_is_none, IoError) {
  const std::string path = temporary("bad_schedule.safetensors");
  Example example;
  example.trainer.save(path);
  StoredFile file = read_safetensors(path);
  file.metadata["tensorgrad.schedule"] = "9 0 0 0 0";
  write_safetensors(path, file);
  // error: TMP/bad_schedule.safetensors: schedule: malformed text '9 0 0 0 0'
  example.trainer.load(path);
}

}  // namespace tensorgrad::testing
