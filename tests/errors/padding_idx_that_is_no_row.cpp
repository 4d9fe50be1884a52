// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(padding_idx_that_is_no_row, UserError) {
  // error: Embedding: padding_idx must be in [0, 4), got 4
  const nn::Embedding table(4, 2, {.padding_idx = 4});
}

}  // namespace tensorgrad::testing
