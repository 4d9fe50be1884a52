// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(weights_of_which_two_get_one_name, IoError) {
  const std::string path = temporary("one_name.safetensors");
  const StoredTensor bias{"F32", {2}, std::vector<std::byte>(8)};
  write_safetensors(path, {{{"a.bias", bias}, {"b.bias", bias}}, {}});
  Example example;
  const ImportOptions options{.names = {{"?.bias", "fc.bias"}}, .partial = true};
  // error: TMP/one_name.safetensors: tensors 'a.bias' and 'b.bias' both become 'fc.bias'
  example.trainer.import_weights(path, options);
}

}  // namespace tensorgrad::testing
