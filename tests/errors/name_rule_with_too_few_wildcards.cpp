// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(name_rule_with_too_few_wildcards, UserError) {
  const ImportOptions options{.names = {{"h.*.weight", "layers.*.*"}}};
  // error: name rule 'h.*.weight' -> 'layers.*.*': the replacement has more wildcards than the
  // pattern
  read_weights("any.safetensors", options);
}

}  // namespace tensorgrad::testing
