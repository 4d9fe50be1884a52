// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(weights_that_lack_a_parameter, UserError) {
  const std::string path = temporary("lacks.safetensors");
  write_safetensors(path, {{{"fc.weight", {"F16", {2, 3}, std::vector<std::byte>(12)}}}, {}});
  Example example;
  // error: TMP/lacks.safetensors: no tensor for parameter 'fc.bias' f32[2]
  example.trainer.import_weights(path);
}

}  // namespace tensorgrad::testing
