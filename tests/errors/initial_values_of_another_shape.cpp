// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(initial_values_of_another_shape, ShapeError) {
  FunctionOptions options{.inputs = {{"x", {1, 3}}}, .device = {.kind = "cpu"}};
  options.initial = [](const std::string&, const Shape& shape) {
    const std::vector<float> values(static_cast<std::size_t>(numel(shape)));
    return init::literal(HostTensor::from({numel(shape)}, values));
  };
  const auto forward = [](const Net& net, In in) { return net.fc(in["x"]); };
  // error: the initial values of 'fc.weight': expected [2,3], got [6]
  compile_function(Net{}, forward, options);
}

}  // namespace tensorgrad::testing
