// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(initial_values_of_another_shape, ShapeError) {
  ForwardOptions options{.inputs = {{"x", {1, 3}}}, .device = {.kind = "cpu"}};
  options.initial = [](const std::string&, const Shape& shape) {
    const std::vector<float> values(static_cast<std::size_t>(numel(shape)));
    return init::literal(HostTensor::of({numel(shape)}, values));
  };
  const auto forward = [](const Net& net, In in) { return net.fc(in["x"]); };
  // error: the initial values of 'fc.weight': [2,3] expected, got [6]
  compile_forward(Net{}, forward, options);
}

}  // namespace tensorgrad::testing
