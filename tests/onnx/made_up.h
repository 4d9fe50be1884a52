// SPDX-License-Identifier: MIT
// Inputs for exported models.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

// Returns numbers from -1 to 1.
inline HostTensor made_up(const Shape& shape, int phase = 0) {
  std::vector<float> values(static_cast<std::size_t>(numel(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(0.7F * static_cast<float>(i) + static_cast<float>(phase));
  return HostTensor::from(shape, values);
}

// Returns indices below `count`.
inline HostTensor indices(const Shape& shape, std::int32_t count) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(numel(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int32_t>(i * 5 + 3) % count;
  return HostTensor::from(shape, values);
}

inline FunctionOptions on_cpu(std::vector<InputSpec> inputs) {
  return {.inputs = std::move(inputs), .device = {.kind = "cpu"}};
}

}  // namespace tensorgrad::testing
