// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_for_pages_with_a_name_that_is_not_utf8, UserError) {
  const auto forward =
      compile_function(Net{}, [](const Net& net, In in) { return net.fc(in["x"]); },
                       {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}});
  // error: export_web: a name or WebOptions::doc is not valid UTF-8
  forward.export_web(temporary("doc"), {.doc = "\xff"});
}

}  // namespace tensorgrad::testing
