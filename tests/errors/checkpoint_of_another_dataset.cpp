// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_of_another_dataset, IoError) {
  const std::string path = temporary("bad_position.safetensors");
  Example example;
  example.trainer.save(path);
  StoredFile file = read_safetensors(path);
  file.metadata["tensorgrad.position"] = "7";
  write_safetensors(path, file);
  // error: TMP/bad_position.safetensors: the checkpoint is from another dataset or corrupt:
  // position 7 of 0 batches
  example.trainer.load(path);
}

}  // namespace tensorgrad::testing
