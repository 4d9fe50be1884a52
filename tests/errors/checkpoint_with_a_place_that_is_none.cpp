// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_with_a_place_that_is_none, UserError) {
  const std::string path = temporary("bad_loader.safetensors");
  const DataLoader loader(3, [](std::int64_t) { return NamedTensors{}; });
  Example example;
  example.trainer.add_loader("train", loader);
  example.trainer.save(path);
  StoredFile file = read_safetensors(path);
  file.metadata["tensorgrad.loader.train"] = "0 -1 0 3 1";
  write_safetensors(path, file);
  // error: TMP/bad_loader.safetensors: data loader 'train': invalid data loader state '0 -1 0 3 1'
  example.trainer.load(path);
}

}  // namespace tensorgrad::testing
