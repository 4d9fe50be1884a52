// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(ema_that_is_not_kept, UserError) {
  const Example e;
  e.trainer.download_ema();  // error: download_ema: ema_decay is not set
}

}  // namespace tensorgrad::testing
