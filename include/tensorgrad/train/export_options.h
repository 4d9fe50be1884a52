// SPDX-License-Identifier: MIT
// Options of the exports of compiled functions: ONNX files and web pages.
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

/// Options of CompiledFunction::export_web().
struct WebOptions {
  std::string name = "model";  ///< Name of the model in the manifest.
  std::string doc = {};        ///< Text for the page, as `model.doc`; e.g. the names of classes.

  /// Sizes of the dynamic dimension to export, each at least 1, without duplicates. The page can
  /// call the function for these sizes only. Empty: FunctionOptions::dynamic_size.
  std::vector<std::int64_t> sizes = {};

  /// Stores f16 values in two bytes, which halves their memory but requires the feature shader-f16
  /// in the browser. If false, they are stored as f32, but results are still rounded to f16.
  bool f16 = false;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
