// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(capture_that_is_not_there, UserError) {
  Example e;
  // error: unknown capture 'hidden'; available: none
  e.trainer.step(e.feed, {.captures = {"hidden"}});
}

}  // namespace tensorgrad::testing
