// SPDX-License-Identifier: MIT
#include "errors/mistake.h"
#include "support/sketch.h"

namespace tensorgrad::testing {

MISTAKE(environment_with_a_pass_that_is_none, UserError) {
  const ScopedEnv env("TENSORGRAD_SKIP", "cse,fusse");
  // error: TENSORGRAD_SKIP: expected passes among dce, simplify, fold, cse,
  // split_k_to_binding_limit, split_k, split_scatter, split_reduce, rematerialize, fuse,
  // row_epilogue, chain, got 'fusse'
  compiled(plain_loss);
}

}  // namespace tensorgrad::testing
