// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_with_a_loader_that_is_not_there, UserError) {
  const std::string path = temporary("with_loader.safetensors");
  const DataLoader loader(3, [](std::int64_t) { return NamedTensors{}; });
  Example saved, loaded;
  saved.trainer.add_loader("train", loader);
  saved.trainer.save(path);
  // error: TMP/with_loader.safetensors: the checkpoint has the state of a data loader 'train'; call
  // add_loader() first
  loaded.trainer.load(path);
}

}  // namespace tensorgrad::testing
