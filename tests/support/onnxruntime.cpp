// SPDX-License-Identifier: MIT
#include "support/onnxruntime.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/source_path.h"

namespace tensorgrad::testing {
namespace {

// Converts to the storage format of files, which use one byte per bool.
StoredTensor stored(const HostTensor& tensor) {
  StoredTensor made{std::string(stored_dtype(tensor.dtype)), tensor.shape, tensor.bytes};
  if (tensor.dtype != DType::kBool) return made;
  made.data.clear();
  for (std::size_t i = 0; i < tensor.bytes.size(); i += kWordBytes)
    made.data.push_back(tensor.bytes[i]);
  return made;
}

}  // namespace

std::string OnnxRuntime::path(const std::string& model) const {
  return (folder_.path() / (model + ".onnx")).string();
}

void OnnxRuntime::expect(const std::string& model, const std::map<std::string, HostTensor>& inputs,
                         const NamedTensors& outputs,
                         const std::map<std::string, HostTensor>& params) {
  StoredFile file;
  for (const auto& [name, tensor] : params) file.tensors["init/" + name] = stored(tensor);
  for (const auto& [name, tensor] : inputs) file.tensors["in/" + name] = stored(tensor);
  for (const auto& [name, tensor] : outputs) file.tensors["out/" + name] = stored(tensor);
  const std::string number = std::to_string(cases_[model]++);
  write_safetensors((folder_.path() / (model + "." + number + ".safetensors")).string(), file);
}

void OnnxRuntime::check(double tolerance) const {
  const std::string said = (folder_.path() / "said.txt").string();
  const std::string command =
      std::string("PYTHONPATH='" TENSORGRAD_ONNX_PACKAGES "' '") + TENSORGRAD_PYTHON "' -B '" +
      test::source_path("tests/onnx/compare.py") + "' '" + folder_.path().string() + "' " +
      std::to_string(tolerance) + " > '" + said + "' 2>&1";
  const int status = std::system(command.c_str());
  std::ostringstream text;
  text << std::ifstream(said).rdbuf();
  EXPECT_EQ(status, 0) << command << '\n' << text.str();
  int cases = 0;
  for (const auto& [model, count] : cases_) cases += count;
  const std::string last =
      std::to_string(cases_.size()) + " models, " + std::to_string(cases) + " cases\n";
  EXPECT_TRUE(text.str().ends_with(last)) << text.str();
}

}  // namespace tensorgrad::testing
