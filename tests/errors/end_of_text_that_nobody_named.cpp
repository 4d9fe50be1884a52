// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(end_of_text_that_nobody_named, UserError) {
  // throws: tokenizer: no eos token is set; call set_eos()
  static_cast<void>(Tokenizer::bytes().encode("a", {.add_eos = true}));
}

}  // namespace tensorgrad::testing
