// SPDX-License-Identifier: MIT
// What devices do that have nothing to do with an application's objects.
#include "backend/backend.h"

#include "tensorgrad/error.h"

namespace tensorgrad {

BufferHandle Device::adopt(WGPUBufferImpl*, std::int64_t, const std::string& label) {
  throw UserError(label + ": a WGPUBuffer is bound on a webgpu device, and this is " +
                  info().backend + " (" + info().name + ")");
}

}  // namespace tensorgrad
