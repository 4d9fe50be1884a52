// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loader_that_is_gone_when_saved, UserError) {
  Example example;
  example.trainer.add_loader("train", DataLoader(3, [](std::int64_t) { return NamedTensors{}; }));
  // error: the data loader 'train' of this trainer no longer exists
  example.trainer.save(temporary("gone.safetensors"));
}

}  // namespace tensorgrad::testing
