// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_with_a_name_that_is_not_utf8, IoError) {
  const auto forward =
      compile_function(Net{}, [](const Net& net, In in) { return net.fc(in["x"]); },
                       {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}});
  // error: TMP/doc.onnx: "\xff" is not UTF-8
  forward.export_onnx(temporary("doc.onnx"), {.doc = "\xff"});
}

}  // namespace tensorgrad::testing
