// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loader_with_samples_that_differ, ShapeError) {
  DataLoader loader(
      2,
      [](std::int64_t i) -> NamedTensors {
        return {
            {"x", HostTensor::from({i + 1}, std::vector<float>(static_cast<std::size_t>(i) + 1))}};
      },
      {.batch = 2, .shuffle = false});
  // error: data loader: sample 1: field 'x' is f32[2], other samples in the batch have f32[1]
  loader.next();
}

}  // namespace tensorgrad::testing
