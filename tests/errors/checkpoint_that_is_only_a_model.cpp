// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_that_is_only_a_model, IoError) {
  const std::string path = temporary("only_a_model.safetensors");
  Example example;
  StoredFile file;
  for (const auto& [name, tensor] : example.trainer.download_params()) {
    file.tensors[name] = {"F32", tensor.shape, tensor.bytes};
  }
  write_safetensors(path, file);
  // error: TMP/only_a_model.safetensors: not a trainer checkpoint: the field 'version' is missing
  example.trainer.load(path);
}

}  // namespace tensorgrad::testing
