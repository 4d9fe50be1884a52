// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(optimizer_state_that_is_not_there, UserError) {
  Example e;
  const HostTensor value{f32, {2}, std::vector<std::byte>(8)};
  // error: upload_optimizer: the optimizer has no state 'exp_avg/fc.bias'
  e.trainer.upload_optimizer({{"exp_avg/fc.bias", value}});
}

}  // namespace tensorgrad::testing
