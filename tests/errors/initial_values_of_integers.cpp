// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(initial_values_of_integers, DtypeError) {
  CompileOptions options{.optimizer = optim::SGD{}};
  options.initial = [](const std::string&, const Shape& shape) {
    const std::vector<std::int32_t> values(static_cast<std::size_t>(numel(shape)));
    const HostTensor tensor = HostTensor::of(shape, values);
    // error: literal: parameters are f32, so f32 or f16 is expected, got i32
    return init::literal(tensor);
  };
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
