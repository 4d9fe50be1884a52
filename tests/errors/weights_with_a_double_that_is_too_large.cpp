// SPDX-License-Identifier: MIT
#include <span>

#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(weights_with_a_double_that_is_too_large, IoError) {
  const std::string path = temporary("too_large_double.safetensors");
  const double value = -1e39;
  const auto bytes = std::as_bytes(std::span(&value, 1));
  write_safetensors(path, {{{"scale", {"F64", {}, {bytes.begin(), bytes.end()}}}}, {}});
  // error: TMP/too_large_double.safetensors: tensor "scale" (F64): element 0 is -1e+39, which does
  // not fit in f32
  read_weights(path);
}

}  // namespace tensorgrad::testing
