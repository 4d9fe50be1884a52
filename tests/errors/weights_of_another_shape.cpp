// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(weights_of_another_shape, UserError) {
  const std::string path = temporary("other_shape.safetensors");
  write_safetensors(path, {{{"w", {"F16", {2, 3}, std::vector<std::byte>(12)}}}, {}});
  Example example;
  const ImportOptions options{.names = {{"w", "fc.weight", {1, 0}}}, .partial = true};
  // error: TMP/other_shape.safetensors: tensor 'w' (F16 [2,3], permuted to [3,2]) does not fit
  // parameter 'fc.weight' f32[2,3]
  example.trainer.import_weights(path, options);
}

}  // namespace tensorgrad::testing
