// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(token_file_of_other_tensors, IoError) {
  const std::string path = temporary("weights.safetensors");
  write_safetensors(path, {});
  // throws: TMP/weights.safetensors: has no tensor "tokens" (to read raw numbers without a header,
  // specify their type)
  const TokenFile file(path);
}

}  // namespace tensorgrad::testing
