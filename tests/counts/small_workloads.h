// SPDX-License-Identifier: MIT
// The workloads of tg_bench, as small as possible.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models.h"

namespace tensorgrad::testing {

// An MLP, convolutions, a transformer with attention and clipping, and a selective scan.
inline const std::vector<std::string> kSmallModels = {"mlp-sin", "fashion-cnn", "addition",
                                                      "mamba1"};

inline DeviceOptions on(std::shared_ptr<Device> device) {
  DeviceOptions options;
  options.opened = std::move(device);
  return options;
}

inline bench::Workload small_workload(const std::string& model, bench::Feeding feeding,
                                      const std::shared_ptr<Device>& device) {
  return bench::make_workload(model, feeding, on(device),
                              {.batch = 4, .layers = 1, .length = model == "mamba1" ? 32 : 0});
}

}  // namespace tensorgrad::testing
