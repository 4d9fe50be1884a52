// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loader_of_a_name_that_is_taken, UserError) {
  const auto get = [](std::int64_t) { return NamedTensors{}; };
  DataLoader one(3, get), two(3, get);
  Example example;
  example.trainer.add_loader("train", one);
  // error: add_loader: the trainer already has a loader 'train'
  example.trainer.add_loader("train", two);
}

}  // namespace tensorgrad::testing
