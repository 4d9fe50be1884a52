// SPDX-License-Identifier: MIT
// The op that represents all user-defined ops. attrs: kernel (its number), name.
#include <algorithm>
#include <bit>

#include "ir/custom.h"
#include "kernel/user_kernel.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

std::shared_ptr<const CustomKernel> kernel_of(const Attrs& attrs) {
  std::shared_ptr<const CustomKernel> found = find_custom(attrs.integer("kernel"));
  if (found == nullptr || found->name != attrs.text("name")) {
    throw UserError("custom op '" + attrs.text("name") + "' is not defined in this process",
                    SourceLocation());
  }
  return found;
}

Type infer_custom(std::span<const Type> in, const Attrs& attrs) {
  const auto kernel = kernel_of(attrs);
  if (!std::equal(in.begin(), in.end(), kernel->inputs.begin(), kernel->inputs.end())) {
    shape_error("the kernel was created for other inputs");
  }
  return kernel->result;
}

std::shared_ptr<const OpaqueKernel> user_kernel(std::span<const Type>, const Attrs& attrs) {
  return std::make_shared<UserKernel>(kernel_of(attrs));
}

std::vector<ValueId> grad_custom(GradContext& ctx) {
  throw UserError("custom op '" + ctx.self().attrs.text("name") +
                      "' has no backward, but a gradient is required through it",
                  ctx.self().location);
}

std::uint32_t bits_of(DType dtype, double value) {
  if (dtype == DType::kF32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
}

double value_of(DType dtype, std::uint32_t bits) {
  if (dtype == DType::kF32) return static_cast<double>(std::bit_cast<float>(bits));
  return dtype == DType::kI32 ? static_cast<double>(std::bit_cast<std::int32_t>(bits))
                              : static_cast<double>(bits);
}

// Evaluates the CPU body in f32; there is no evaluation in double.
void eval_custom(const EvalContext& ctx, RefTensor& out) {
  const auto kernel = kernel_of(ctx.node.attrs);
  if (!kernel->cpu) {
    throw UserError("custom op '" + kernel->name + "' has no CPU body", ctx.node.location);
  }
  std::vector<std::vector<std::uint32_t>> inputs;
  std::vector<const void*> data;
  for (const RefTensor* input : ctx.inputs) {
    std::vector<std::uint32_t>& words = inputs.emplace_back();
    for (const double value : input->data) words.push_back(bits_of(input->type.dtype, value));
    data.push_back(words.data());
  }
  std::vector<std::uint32_t> result(static_cast<std::size_t>(numel(out.type.shape)));
  kernel->cpu(data, result.data(), 0, numel(out.type.shape));
  for (const std::uint32_t word : result) out.data.push_back(value_of(out.type.dtype, word));
}

}  // namespace

namespace ops {

constinit const OpDef custom =
    make_opaque_op("custom", -1, user_kernel, infer_custom, grad_custom, eval_custom, nullptr);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
