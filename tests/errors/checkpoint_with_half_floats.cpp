// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_with_half_floats, IoError) {
  const std::string path = temporary("half_floats.safetensors");
  Example example;
  example.trainer.save(path);
  StoredFile file = read_safetensors(path);
  file.tensors["fc.bias"] = {"F16", {2}, std::vector<std::byte>(4)};
  write_safetensors(path, file);
  // error: TMP/half_floats.safetensors: tensor 'fc.bias' is F16; expected F32, I32 or U32
  example.trainer.load(path);
}

}  // namespace tensorgrad::testing
