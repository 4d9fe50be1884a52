// SPDX-License-Identifier: MIT
// What a model that is exported to ONNX says of itself (Forward::export_onnx).
#pragma once

#include <string>

namespace tensorgrad {

struct OnnxOptions {
  std::string name = "forward";  // of the graph
  std::string doc = {};          // its doc_string
};

}  // namespace tensorgrad
