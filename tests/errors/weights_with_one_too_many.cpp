// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(weights_with_one_too_many, UserError) {
  const std::string path = temporary("too_many.safetensors");
  write_safetensors(path, {{{"extra", {"BF16", {2}, std::vector<std::byte>(4)}}}, {}});
  Example example;
  const ImportOptions options{.names = {{"*", "fc.*"}}, .partial = true};
  // error: TMP/too_many.safetensors: tensor 'extra' (BF16 [2]): the model has no parameter or
  // buffer 'fc.extra'
  example.trainer.import_weights(path, options);
}

}  // namespace tensorgrad::testing
