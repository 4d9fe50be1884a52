// SPDX-License-Identifier: MIT
// Options of the export for web pages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Options of CompiledFunction::export_web().
struct WebOptions {
  std::string name = "model";  ///< Name of the model in the manifest.
  std::string doc = {};        ///< Text for the page, as `model.doc`; e.g. the names of classes.

  /// Sizes of the dynamic dimension to export, each at least 1 and different. The page can call the
  /// function for these sizes only. Empty: FunctionOptions::dynamic_size.
  std::vector<std::int64_t> sizes = {};

  /// Stores f16 values in two bytes, which halves their memory but requires the feature shader-f16
  /// in the browser. If false, they are stored as f32, with results rounded to f16 all the same.
  bool f16 = false;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
