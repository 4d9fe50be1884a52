// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(ema_that_is_not_kept, UserError) {
  const Example e;
  // error: download_ema: ema_decay is not set
  static_cast<void>(e.trainer.download_ema());
}

}  // namespace tensorgrad::testing
