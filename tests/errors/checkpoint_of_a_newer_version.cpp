// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_of_a_newer_version, IoError) {
  const std::string path = temporary("newer.safetensors");
  Example example;
  example.trainer.save(path);
  StoredFile file = read_safetensors(path);
  file.metadata["tensorgrad.version"] = "2";
  write_safetensors(path, file);
  // error: TMP/newer.safetensors: unsupported checkpoint version 2; expected version 1
  example.trainer.load(path);
}

}  // namespace tensorgrad::testing
