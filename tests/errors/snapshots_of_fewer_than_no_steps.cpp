// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(snapshots_of_fewer_than_no_steps, UserError) {
  CompileOptions options{.optimizer = optim::SGD{}, .recovery = {.snapshot_steps = -1}};
  // error: RecoveryOptions: expected snapshot_steps of at least 0, got -1
  compiled(plain_loss, options);
}

}  // namespace tensorgrad::testing
