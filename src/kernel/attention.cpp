// SPDX-License-Identifier: MIT
#include "kernel/attention.h"

#include "base/check.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

std::int64_t input_size(const AttentionSizes& s, AttentionInput which) {
  switch (which) {
    case AttentionInput::kQ: return s.batch * s.rows * s.depth;
    case AttentionInput::kK: return s.batch * s.columns * s.depth;
    case AttentionInput::kV: return s.batch * s.columns * s.width;
    case AttentionInput::kDy: return s.batch * s.rows * s.width;
    case AttentionInput::kLse:
    case AttentionInput::kDelta: return s.batch * s.rows;
    case AttentionInput::kMask:
    case AttentionInput::kKeep: return s.batch * s.rows * s.columns;
  }
  UNREACHABLE();
}

}  // namespace

AttentionKernel::AttentionKernel(AttentionPass of, const AttentionSizes& s,
                                 const std::array<int, kAttentionInputs>& operands)
    : pass(of), sizes(s) {
  name = "attention";
  domain = std::to_string(s.batch) + "*" + std::to_string(s.rows) + "x" +
           std::to_string(s.columns) + "x" + std::to_string(s.depth);
  rows = s.batch;
  for (std::size_t i = 0; i < kAttentionInputs; ++i) {
    const auto which = static_cast<AttentionInput>(i);
    const bool of_scores = which == AttentionInput::kMask || which == AttentionInput::kKeep;
    inputs.push_back(
        {.size = input_size(s, which), .operand = operands[i], .computed_inside = of_scores});
  }
  const std::int64_t queries = s.batch * s.rows, keys = s.batch * s.columns;
  std::int64_t products = 0;  // multiply-adds per score
  switch (pass) {
    case AttentionPass::kForward:
      results = {{queries * s.width, true}, {queries, true}};
      products = s.depth + s.width;
      break;
    case AttentionPass::kQueries:
      results = {{queries * s.depth}};
      products = 2 * s.depth + s.width;
      break;
    case AttentionPass::kKeys:
      results = {{keys * s.depth}, {keys * s.width}};
      products = 2 * s.depth + 2 * s.width;
      break;
    case AttentionPass::kBackward:
      results = {{keys * s.depth}, {keys * s.width}, {s.dq_parts * queries * s.depth}};
      products = 3 * s.depth + 2 * s.width;
      break;
  }
  flops = 2 * queries * s.columns * products / (s.causal && s.rows == s.columns ? 2 : 1);
  microseconds = &GpuModel::attention_microseconds;
  concurrent = true;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
