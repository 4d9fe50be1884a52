// SPDX-License-Identifier: MIT
// Stubs for parts of the WebGPU backend that both modules omit, since a page has no file system.
#include "backend/webgpu/tuner.h"

namespace tensorgrad::webgpu {

// The cache is a file.
std::vector<std::shared_ptr<Pipeline>> Tuner::tune(const Program&, const WgslOptions&,
                                                   std::vector<Dispatch>&) {
  return {};
}

}  // namespace tensorgrad::webgpu
