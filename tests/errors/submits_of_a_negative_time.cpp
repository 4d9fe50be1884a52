// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(submits_of_a_negative_time, UserError) {
  CompileOptions options{.optimizer = optim::SGD{}};
  options.device.submit_milliseconds = -5;
  // error: device: expected submit_milliseconds of at least 0, got -5
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
