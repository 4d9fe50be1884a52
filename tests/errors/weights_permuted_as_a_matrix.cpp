// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(weights_permuted_as_a_matrix, IoError) {
  const std::string path = temporary("permuted.safetensors");
  write_safetensors(path, {{{"fc.bias", {"F32", {2}, std::vector<std::byte>(8)}}}, {}});
  const ImportOptions options{.names = {{"fc.*", "fc.*", {1, 0}}}};
  // error: TMP/permuted.safetensors: tensor 'fc.bias' (F32 [2]) cannot be permuted by a rule for 2
  // axes
  read_weights(path, options);
}

}  // namespace tensorgrad::testing
