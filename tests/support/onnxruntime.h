// SPDX-License-Identifier: MIT
// Runs ONNX models in onnxruntime and compares their outputs with expected values.
#pragma once

#include <map>
#include <string>

#include "support/dump.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

class OnnxRuntime {
 public:
  explicit OnnxRuntime(const std::string& name) : folder_("onnx_" + name) {}

  // Returns the path to which to write a model.
  [[nodiscard]] std::string path(const std::string& model) const;
  // Adds a case: inputs of a model and the expected outputs. `params` are expected among its
  // initializers. For a model with dynamic sizes, further cases may have other sizes. Dimensions
  // that differ must be dynamic in the model. Those that are equal must have the same name.
  void expect(const std::string& model, const std::map<std::string, HostTensor>& inputs,
              const NamedTensors& outputs, const std::map<std::string, HostTensor>& params = {});
  // Runs compare.py. Fails the test for each model that differs.
  void check(double tolerance = 3e-5) const;

 private:
  ScratchFolder folder_;
  std::map<std::string, int> cases_;  // number of cases per model
};

}  // namespace tensorgrad::testing
