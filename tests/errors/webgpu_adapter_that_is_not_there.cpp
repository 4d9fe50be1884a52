// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(webgpu_adapter_that_is_not_there, DeviceError) {
  const CompileOptions options{.optimizer = optim::SGD{},
                               .device = {.kind = "webgpu", .adapter = 99}};
  compiled(plain_loss, options);  // error: webgpu: unknown adapter 99; found:
}

}  // namespace tensorgrad::testing
