// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(weights_of_float8, IoError) {
  const std::string path = temporary("float8.safetensors");
  write_safetensors(path, {{{"fc.bias", {"F8_E4M3", {2}, std::vector<std::byte>(2)}}}, {}});
  // error: TMP/float8.safetensors: tensor "fc.bias" (F8_E4M3): expected F64, F32, F16, BF16, an
  // integer type or BOOL
  read_weights(path);
}

}  // namespace tensorgrad::testing
