// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(some_parameters_with_one_too_many, UserError) {
  Example e;
  const HostTensor value{f32, {1}, std::vector<std::byte>(4)};
  // error: upload_params: the model has no parameter 'fc.scale'
  e.trainer.upload_params({{"fc.scale", value}}, {.partial = true});
}

}  // namespace tensorgrad::testing
