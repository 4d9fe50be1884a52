// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_for_pages_of_sizes_without_a_dynamic_one, UserError) {
  const auto forward =
      compile_function(Net{}, [](const Net& net, In in) { return net.fc(in["x"]); },
                       {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}});
  // error: export_web: WebOptions::sizes is [4], but no input has a dynamic size
  forward.export_web(temporary("sizes"), {.sizes = {4}});
}

}  // namespace tensorgrad::testing
