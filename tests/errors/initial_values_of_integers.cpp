// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(initial_values_of_integers, DtypeError) {
  CompileOptions options{.optimizer = optim::SGD{}};
  options.initial = [](const std::string&, const Shape& shape) {
    const std::vector<std::int32_t> values(static_cast<std::size_t>(numel(shape)));
    const HostTensor tensor = HostTensor::from(shape, values);
    // error: literal: expected f32 or f16 for a parameter, got i32
    return init::literal(tensor);
  };
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
