// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(weights_of_integers_for_a_parameter, UserError) {
  const std::string path = temporary("integers.safetensors");
  write_safetensors(path, {{{"fc.bias", {"I64", {2}, std::vector<std::byte>(16)}}}, {}});
  Example example;
  // error: TMP/integers.safetensors: tensor 'fc.bias' (I64 [2]) does not fit parameter 'fc.bias'
  // f32[2]
  example.trainer.import_weights(path, {.partial = true});
}

}  // namespace tensorgrad::testing
