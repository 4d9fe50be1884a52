// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(model_without_parameters, UserError) {
  const CompileOptions options{.inputs = {{"x", {4}}}, .optimizer = optim::SGD{}};
  const auto loss = [](const nn::ReLU&, In in) { return sum(in["x"]); };
  compile(nn::ReLU{}, loss, options);  // error: compile: the model has no parameters
}

}  // namespace tensorgrad::testing
