// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(muon_of_a_vector, UserError) {
  const CompileOptions options{.optimizer = optim::Muon{.params = "fc.bias"}};
  // error: Muon: expected parameters with two axes, 'fc.bias' has 1
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
