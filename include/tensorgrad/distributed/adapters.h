// SPDX-License-Identifier: MIT
// Choice of the GPU of each rank.
#pragma once

#include <vector>

#include "tensorgrad/train/device.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns the numbers of the usable adapters in `all`, the result of devices() with the same
/// options, that have the same name and driver as the one that `options` select.
/// DeviceOptions::adapter takes them, for ranks that each use a GPU of their own:
/// ```cpp
/// std::string note;
/// const std::vector<int> gpus = tg::equal_adapters(tg::devices({}, note));
/// options.device = {.kind = "webgpu", .adapter = gpus.at(rank % gpus.size())};
/// ```
/// The kind "auto" selects its GPU, and "webgpu" the first usable adapter. `adapter` is ignored.
/// Returns an empty vector if nothing is selected, or with other kinds.
std::vector<int> equal_adapters(const std::vector<DeviceDescription>& all,
                                const DeviceOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
