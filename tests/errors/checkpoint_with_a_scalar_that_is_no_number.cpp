// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_with_a_scalar_that_is_no_number, IoError) {
  const std::string path = temporary("scalar_no_number.safetensors");
  auto trainer =
      compiled([](const Net& net, In in) { return mean(net.fc(in["x"])) * scalar("beta", 0.5); });
  trainer.save(path);
  StoredFile file = read_safetensors(path);
  file.metadata["tensorgrad.scalar.beta"] = "0x1p-1 or so";
  write_safetensors(path, file);
  // error: TMP/scalar_no_number.safetensors: not a trainer checkpoint: the field 'scalar.beta' is
  // '0x1p-1 or so', expected a number
  trainer.load(path);
}

}  // namespace tensorgrad::testing
