// SPDX-License-Identifier: MIT
// sample_tokens(): a token of each row of logits.
#include "kernel/sample_tokens.h"

#include <memory>
#include <vector>

#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

Type infer_sample(std::span<const Type> in, const Attrs& /*attrs*/) {
  for (const Type& type : in) {
    if (type.dtype != DType::kF32) dtype_error("expected f32, got " + to_string(type));
  }
  const Shape& logits = in[0].shape;
  if (logits.size() != 2) shape_error("expected logits of two axes, got " + to_string(logits));
  if (logits[1] < 1 || logits[1] > kMaxSampledTokens) {
    shape_error("expected 1 to " + std::to_string(kMaxSampledTokens) + " tokens, got " +
                std::to_string(logits[1]));
  }
  if (in[1].shape != Shape{logits[0]} || in[2].shape != Shape{logits[0], kSampleControls}) {
    shape_error("uniform " + to_string(in[1].shape) + " or controls " + to_string(in[2].shape) +
                " do not match logits " + to_string(logits));
  }
  return {DType::kI32, {logits[0]}};
}

void sample_rows(const EvalContext& ctx, RefTensor& out) {
  const RefTensor &logits = *ctx.inputs[0], &uniform = *ctx.inputs[1], &controls = *ctx.inputs[2];
  const auto rows = static_cast<std::size_t>(logits.type.shape[0]);
  const auto tokens = static_cast<std::size_t>(logits.type.shape[1]);
  const auto floats = [](const std::vector<double>& from, std::size_t first, std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(from[first + i]);
    return values;
  };
  out.data.resize(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    out.data[row] = sample_token(floats(logits.data, row * tokens, tokens),
                                 static_cast<float>(uniform.data[row]),
                                 floats(controls.data, row * kSampleControls, kSampleControls));
  }
}

std::shared_ptr<const OpaqueKernel> sample_kernel(std::span<const Type> in,
                                                  const Attrs& /*attrs*/) {
  return std::make_shared<SampleTokensKernel>(in[0].shape[0], in[0].shape[1]);
}

}  // namespace

namespace ops {

constinit const OpDef sample_tokens =
    make_opaque_op("sample_tokens", 3, sample_kernel, infer_sample, nullptr, sample_rows, nullptr);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
