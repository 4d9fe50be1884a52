// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(floats_of_an_integer_output, DtypeError) {
  auto forward = compile_function(Net{}, [](const Net&, In in) { return in["i"] + 1; },
                                  {.inputs = {{"i", {4}, i32}}, .device = {.kind = "cpu"}});
  // throws: floats: expected f32 or f16, got i32
  static_cast<void>(forward(Feed{{"i", Example().i}}).floats());
}

}  // namespace tensorgrad::testing
