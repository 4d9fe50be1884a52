// SPDX-License-Identifier: MIT
// Models of ONNX with inputs and what should come out of them, which onnxruntime then runs.
#pragma once

#include <map>
#include <string>

#include "support/dump.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

class OnnxRuntime {
 public:
  explicit OnnxRuntime(const std::string& name) : folder_("onnx_" + name) {}

  // Where a model is to be written.
  [[nodiscard]] std::string path(const std::string& model) const;
  // What it is given, and what it should give; `params` are among its initializers. Given again for
  // a model with an open size, with other sizes: those that differ must be open in it, and have one
  // name where they are the same.
  void expect(const std::string& model, const std::map<std::string, HostTensor>& inputs,
              const NamedTensors& outputs, const std::map<std::string, HostTensor>& params = {});
  // Fails the test for each model that differs: compare.py.
  void check(double tolerance = 3e-5) const;

 private:
  ScratchFolder folder_;
  std::map<std::string, int> cases_;  // of each model
};

}  // namespace tensorgrad::testing
