// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(index_out_of_range_in_a_dataset, UserError) {
  const CompileOptions options{
      .dataset = {{"x", {8, 3}}, {"t", {8}, i32}}, .batch = 4, .optimizer = optim::SGD{}};
  const auto loss = [](const Net& net, In in) {
    // error: input 't': element 1 is -1, which cross_entropy uses as an index in [0, 2); set ...
    return cross_entropy(net.fc(in["x"]), in["t"]);
  };
  compiled(loss, options).upload_data("t", std::vector<std::int32_t>{0, -1, 0, 0, 0, 0, 0, 0});
}

}  // namespace tensorgrad::testing
