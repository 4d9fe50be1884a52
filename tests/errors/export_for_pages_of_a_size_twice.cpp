// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_for_pages_of_a_size_twice, UserError) {
  const auto forward =
      compile_function(Net{}, [](const Net& net, In in) { return net.fc(in["x"]); },
                       {.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}});
  // error: export_web: WebOptions::sizes must be different sizes of at least 1, got [1,8,1]
  forward.export_web(temporary("sizes"), {.sizes = {1, 8, 1}});
}

}  // namespace tensorgrad::testing
