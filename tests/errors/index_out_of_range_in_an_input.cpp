// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(index_out_of_range_in_an_input, UserError) {
  auto trainer = compiled([](const Net& net, In in) {
    // error: input 'i': element 2 is 2, which cross_entropy uses as an index in [0, 2)
    return cross_entropy(net.fc(in["x"]), in["i"]);
  });
  Example example;
  example.i[2] = 2;
  trainer.step(example.feed);
}

}  // namespace tensorgrad::testing
