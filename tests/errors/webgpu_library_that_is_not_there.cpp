// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(webgpu_library_that_is_not_there, DeviceError) {
  CompileOptions options{.optimizer = optim::SGD{}, .device = {.kind = "webgpu"}};
  options.device.webgpu_library = temporary("libwgpu.so");
  compiled(plain_loss, options);  // error: webgpu: no WebGPU library could be loaded; tried:
}

}  // namespace tensorgrad::testing
