// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loader_with_a_field_too_many, UserError) {
  DataLoader loader(2,
                    [](std::int64_t i) -> NamedTensors {
                      NamedTensors sample = {{"x", HostTensor::from({1}, std::vector<float>(1))}};
                      if (i == 1) sample["y"] = sample["x"];
                      return sample;
                    },
                    {.batch = 2, .shuffle = false});
  // error: data loader: sample 1 has a field 'y', unlike other samples in the batch
  loader.next();
}

}  // namespace tensorgrad::testing
