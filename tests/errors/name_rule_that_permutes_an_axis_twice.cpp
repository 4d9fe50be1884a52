// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(name_rule_that_permutes_an_axis_twice, UserError) {
  const ImportOptions options{.names = {{"*", "*", {0, 0}}}};
  // error: name rule '*' -> '*': permute must name each of its 2 axes once
  read_weights("any.safetensors", options);
}

}  // namespace tensorgrad::testing
