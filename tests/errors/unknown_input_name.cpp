// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(unknown_input_name, UserError) {
  compiled([](const Net& net, In in) {
    return mean(net.fc(in["image"]));  // error: unknown input 'image'; available: i, x, y
  });
}

}  // namespace tensorgrad::testing
