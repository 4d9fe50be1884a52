// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(token_file_of_other_tensors, IoError) {
  const std::string path = temporary("weights.safetensors");
  write_safetensors(path, {});
  // throws: TMP/weights.safetensors: has no tensor "tokens" (a file of numbers and nothing else is
  // read with its type)
  const TokenFile file(path);
}

}  // namespace tensorgrad::testing
