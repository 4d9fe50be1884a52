// SPDX-License-Identifier: MIT
#include "kernel/user_kernel.h"

#include <utility>

namespace tensorgrad::inline TENSORGRAD_ABI {

UserKernel::UserKernel(std::shared_ptr<const CustomKernel> user) : op(std::move(user)) {
  name = "custom";
  label = op->name;
  rows = numel(op->result.shape);
  domain = std::to_string(rows);
  for (std::size_t i = 0; i < op->inputs.size(); ++i) {
    inputs.push_back(
        {.size = numel(op->inputs[i].shape), .operand = static_cast<int>(i), .by_row = false});
  }
  results = {{rows}};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
