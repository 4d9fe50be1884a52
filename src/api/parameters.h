// SPDX-License-Identifier: MIT
// The parameters of a model: names, and places in the parameter arena.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/trace.h"
#include "tensorgrad/compile.h"

namespace tensorgrad {

struct ParameterEntry {
  std::string name;
  const Parameter* parameter = nullptr;
  std::int64_t offset = 0;  // in elements; a multiple of 64
  [[nodiscard]] std::int64_t count() const { return numel(parameter->shape()); }
};

class ParameterTable {
 public:
  // Walks the model. A parameter that is reached twice counts once, under its first name. Throws
  // UserError where two of its tensors have one name.
  explicit ParameterTable(const detail::ModelFunctions& model);

  [[nodiscard]] const std::vector<ParameterEntry>& entries() const { return entries_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }

  // Adds a leaf for each to the trace, and tells it the names of the buffers.
  void declare(Trace& trace) const;
  // The whole arena with initial values.
  [[nodiscard]] std::vector<float> initial(std::uint32_t seed) const;
  // A flat arena as tensors by name, and back. `what` names the values in errors. pack() throws
  // UserError on missing or unknown names and wrong sizes.
  [[nodiscard]] std::map<std::string, HostTensor> unpack(const std::vector<float>& flat) const;
  [[nodiscard]] std::vector<float> pack(const std::map<std::string, HostTensor>& tensors,
                                        const std::string& what) const;

 private:
  std::vector<ParameterEntry> entries_;
  std::map<const Buffer*, std::string> buffers_;
  std::int64_t elements_ = 0;
};

}  // namespace tensorgrad
