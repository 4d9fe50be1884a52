// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_of_a_loader_of_other_data, UserError) {
  const std::string path = temporary("other_loader.safetensors");
  const auto get = [](std::int64_t) { return NamedTensors{}; };
  const DataLoader three(3, get), four(4, get);
  Example saved, loaded;
  saved.trainer.add_loader("train", three);
  saved.trainer.save(path);
  loaded.trainer.add_loader("train", four);
  // error: TMP/other_loader.safetensors: data loader 'train': the saved state is for 3 samples in
  // batches of 1, the loader has 4 samples in batches of 1
  loaded.trainer.load(path);
}

}  // namespace tensorgrad::testing
