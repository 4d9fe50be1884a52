// SPDX-License-Identifier: MIT
// What a model that is exported to ONNX says of itself, and how a size is left open in it
// (Forward::export_onnx).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct OnnxOptions {
  std::string name = "forward";  // of the graph
  std::string doc = {};          // its doc_string
  // Where inputs have an open size (kDynamic): what the file calls it, as "batch" or "length" ...
  std::string size_name = "batch";
  // ... and the sizes that the function is traced for, at least three different ones above 1. What
  // holds for these is taken to hold for all. None: 3, 7, 10, 23, 41, 54 and 88, of which those are
  // left out that the function throws a UserError for; and a function is then refused whose
  // operations for a size of 1 are others.
  std::vector<std::int64_t> sizes = {};
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
