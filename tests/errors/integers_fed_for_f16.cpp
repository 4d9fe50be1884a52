// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(integers_fed_for_f16, DtypeError) {
  auto forward = compile_function(Net{}, [](const Net&, In in) { return in["x"] * 2.0; },
                                  {.inputs = {{"x", {2}, f16}}, .device = {.kind = "cpu"}});
  // error: input 'x': expected f16, got i32
  forward({{"x", std::vector<std::int32_t>{1, 2}}});
}

}  // namespace tensorgrad::testing
