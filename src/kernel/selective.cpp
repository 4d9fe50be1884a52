// SPDX-License-Identifier: MIT
#include "kernel/selective.h"

#include "base/check.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

SelectiveKernel::SelectiveKernel(const SelectiveParams& of, std::span<const int> operands)
    : scan(of) {
  const SelectiveSizes& s = scan.sizes;
  CHECK(s.states <= SelectiveSizes::kMaxStates && operands.size() == kSelectiveInputs);
  name = "selective_scan";
  domain = std::to_string(s.batch) + "*" + std::to_string(s.length) + "x" +
           std::to_string(s.channels) + "x" + std::to_string(s.states);
  rows = s.batch;
  for (std::size_t i = 0; i < kSelectiveInputs; ++i) {
    const auto which = static_cast<SelectiveInput>(i);
    inputs.push_back(
        {.size = s.input(which), .operand = operands[i], .by_row = which != SelectiveInput::kA});
  }
  for (const std::int64_t size : scan.results()) results.push_back({size});
  // Operations per state and step; an exponential counts as one.
  const std::int64_t each = scan.pass == SelectivePass::kForward   ? 7
                            : scan.pass == SelectivePass::kAdjoint ? 5
                                                                   : 22;
  flops = each * s.steps() * s.states;
  uses_subgroups = scan.pass == SelectivePass::kBackward;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
