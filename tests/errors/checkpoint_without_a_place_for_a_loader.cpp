// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_without_a_place_for_a_loader, IoError) {
  const std::string path = temporary("without_loader.safetensors");
  const DataLoader loader(3, [](std::int64_t) { return NamedTensors{}; });
  Example saved, loaded;
  saved.trainer.save(path);
  loaded.trainer.add_loader("train", loader);
  // error: TMP/without_loader.safetensors: not a trainer checkpoint: the field 'loader.train' is
  // missing
  loaded.trainer.load(path);
}

}  // namespace tensorgrad::testing
