// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(trace_within_a_trace, UserError) {
  compiled([](const Net& net, In in) {
    // error: compile, compile_function and attach may not be called inside a traced function
    compiled(plain_loss);
    return plain_loss(net, in);
  });
}

}  // namespace tensorgrad::testing
