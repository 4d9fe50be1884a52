// SPDX-License-Identifier: MIT
#include <stdexcept>

#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loader_of_a_sample_that_cannot_be_made, UserError) {
  DataLoader loader(3, [](std::int64_t i) -> NamedTensors {
    throw std::out_of_range("row " + std::to_string(i));
  });
  // error: data loader: sample #: row #
  loader.next();
}

}  // namespace tensorgrad::testing
