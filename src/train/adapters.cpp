// SPDX-License-Identifier: MIT
#include "tensorgrad/distributed/adapters.h"

#include <algorithm>

namespace tensorgrad::inline TENSORGRAD_ABI {

std::vector<int> equal_adapters(const std::vector<DeviceDescription>& all,
                                const DeviceOptions& options) {
  std::vector<const DeviceDescription*> adapters;
  for (const DeviceDescription& each : all) {
    if (each.kind == "webgpu") adapters.push_back(&each);
  }
  const auto usable = [](const DeviceDescription* each) { return each->usable; };
  auto selected = adapters.end();
  if (options.kind == "webgpu") {
    selected = std::find_if(adapters.begin(), adapters.end(), usable);
  } else if (options.kind == "auto") {
    selected = std::find_if(adapters.begin(), adapters.end(),
                            [](const DeviceDescription* each) { return each->chosen_by_auto; });
  }
  std::vector<int> equal;
  if (selected == adapters.end()) return equal;
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    if (usable(adapters[i]) && adapters[i]->name == (*selected)->name &&
        adapters[i]->driver == (*selected)->driver)
      equal.push_back(static_cast<int>(i));
  }
  return equal;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
