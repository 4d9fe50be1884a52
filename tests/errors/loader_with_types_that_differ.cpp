// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(loader_with_types_that_differ, DtypeError) {
  DataLoader loader(2,
                    [](std::int64_t i) -> NamedTensors {
                      if (i == 0) return {{"x", HostTensor::from({1}, std::vector<float>(1))}};
                      return {{"x", HostTensor::from({1}, std::vector<std::int32_t>(1))}};
                    },
                    {.batch = 2, .shuffle = false});
  // error: data loader: sample 1: field 'x' is i32[1], other samples in the batch have f32
  loader.next();
}

}  // namespace tensorgrad::testing
