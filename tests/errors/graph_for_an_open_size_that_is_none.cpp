// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(graph_for_an_open_size_that_is_none, UserError) {
  const auto forward =
      compile_function(Net{}, [](const Net& net, In in) { return net.fc(in["x"]); },
                       {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}});
  // error: graph: a dynamic size is given, but no input has one
  static_cast<void>(forward.graph(GraphStage::kTraced, 5));
}

}  // namespace tensorgrad::testing
