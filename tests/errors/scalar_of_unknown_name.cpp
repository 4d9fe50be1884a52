// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(scalar_of_unknown_name, UserError) {
  auto trainer =
      compiled([](const Net& net, In in) { return mean(net.fc(in["x"])) * scalar("beta", 0.5); });
  trainer.set("beta", 0.25);
  trainer.set("alpha", 1);  // error: unknown run-time scalar 'alpha'; available: beta
}

}  // namespace tensorgrad::testing
