// SPDX-License-Identifier: MIT
// Options of the ONNX export.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Options of CompiledFunction::export_onnx().
struct OnnxOptions {
  std::string name = "forward";  ///< Name of the graph.
  std::string doc = {};          ///< `doc_string` of the graph.

  std::string size_name = "batch";  ///< Name of the dynamic dimension in the file; not empty.

  /// Sizes of the dynamic dimension for which the function is traced: at least three different ones
  /// above 1. What holds for these sizes is assumed to hold for all others.
  ///
  /// Empty: 3, 7, 10, 23, 41, 54 and 88, without those for which the function throws UserError; at
  /// least three must remain. In this case, functions whose ops differ for a size of 1 are rejected
  /// with UserError.
  std::vector<std::int64_t> sizes = {};

  /// Exports states that the function changes as inputs of their names and outputs NAME + ".next",
  /// for the caller to pass on from run to run. If false, such a function is rejected with
  /// UserError.
  bool states = false;

  /// Entries of the file's `metadata_props`, in UTF-8, such as the names of classes.
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
