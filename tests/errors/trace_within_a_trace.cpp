// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(trace_within_a_trace, UserError) {
  compiled([](const Net& net, In in) {
    // error: a function that is being traced may not compile or attach another
    compiled(plain_loss);
    return plain_loss(net, in);
  });
}

}  // namespace tensorgrad::testing
