// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(weights_with_an_integer_that_is_too_large, IoError) {
  const std::string path = temporary("too_large.safetensors");
  std::vector<std::byte> bytes(16);
  bytes[12] = std::byte{1};  // sets the second element to 2^32
  write_safetensors(path, {{{"count", {"I64", {2}, bytes}}}, {}});
  // error: TMP/too_large.safetensors: tensor "count" (I64): element 1 is 4294967296, which does not
  // fit in i32
  read_weights(path);
}

}  // namespace tensorgrad::testing
