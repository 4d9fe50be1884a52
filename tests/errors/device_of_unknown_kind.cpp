// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(device_of_unknown_kind, UserError) {
  const CompileOptions options{.optimizer = optim::SGD{}, .device = {.kind = "cuda"}};
  // error: device: expected auto, cpu, webgpu or null, got 'cuda'
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
