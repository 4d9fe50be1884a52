// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(export_for_pages_into_a_file, IoError) {
  const auto forward =
      compile_function(Net{}, [](const Net& net, In in) { return net.fc(in["x"]); },
                       {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}});
  forward.export_onnx(temporary("file"));
  // error: TMP/file: cannot create the folder: ...
  forward.export_web(temporary("file"));
}

}  // namespace tensorgrad::testing
