// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_with_a_scalar_that_is_missing, UserError) {
  const std::string path = temporary("scalar_missing.safetensors");
  auto trainer =
      compiled([](const Net& net, In in) { return mean(net.fc(in["x"])) * scalar("beta", 0.5); });
  trainer.save(path);
  StoredFile file = read_safetensors(path);
  file.metadata.erase("tensorgrad.scalar.beta");
  write_safetensors(path, file);
  // error: TMP/scalar_missing.safetensors: the checkpoint is from another optimizer or other
  // options: it has no value for 'beta', this trainer needs one
  trainer.load(path);
}

}  // namespace tensorgrad::testing
