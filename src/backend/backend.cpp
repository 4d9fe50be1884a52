// SPDX-License-Identifier: MIT
// Default implementations of Device members.
#include "backend/backend.h"

#include "base/check.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

BufferHandle Device::adopt(WGPUBufferImpl*, std::int64_t, const std::string& label) {
  throw UserError(label + ": binding a WGPUBuffer requires a webgpu device, this is " +
                  info().backend + " (" + info().name + ")");
}

void Device::add_set(Executable&, std::span<const BufferHandle>) {
  UNREACHABLE("a set of buffers on " + info().backend);
}

std::size_t Device::run_some(Executable& executable, const RuntimeScalars& row, std::size_t,
                             std::size_t, std::chrono::duration<double>) {
  wait(run(executable, {&row, 1}));
  return 0;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
