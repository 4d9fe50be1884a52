// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(no_optimizer, UserError) {
  const CompileOptions options{.inputs = {{"x", {4, 3}}, {"y", {4, 2}}}};
  compile(Net{}, plain_loss, options);  // error: compile: an optimizer is required
}

}  // namespace tensorgrad::testing
