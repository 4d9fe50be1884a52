// SPDX-License-Identifier: MIT
#include "tensorgrad/ops/custom_op.h"

#include <algorithm>
#include <mutex>

#include "ir/custom.h"
#include "ops/registry.h"
#include "tensorgrad/ops/autograd.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// A launch uses one binding for each input and one for its result.
constexpr std::size_t kMaxInputs = 7;

std::vector<TensorType> public_types(const std::vector<Type>& types) {
  std::vector<TensorType> result;
  for (const Type& type : types) result.push_back({type.shape, type.dtype});
  return result;
}

}  // namespace

std::int64_t CustomCall::check(std::size_t i, DType wanted) const {
  if (i >= inputs_.size()) {
    throw UserError("custom op '" + kernel_.name + "': input " + std::to_string(i) +
                        " is out of range; the number of inputs is " +
                        std::to_string(inputs_.size()),
                    SourceLocation());
  }
  const Type& type = kernel_.inputs[i];
  const bool word = wanted == DType::kU32 && type.dtype == DType::kBool;
  if (type.dtype != wanted && !word) {
    throw DtypeError("custom op '" + kernel_.name + "': input " + std::to_string(i) + " is " +
                         to_string(type) + ", requested as " + std::string(to_string(wanted)),
                     SourceLocation());
  }
  return numel(type.shape);
}

std::span<const float> CustomCall::floats(std::size_t i) const {
  const auto count = static_cast<std::size_t>(check(i, DType::kF32));
  return {static_cast<const float*>(inputs_[i]), count};
}

std::span<const std::int32_t> CustomCall::ints(std::size_t i) const {
  const auto count = static_cast<std::size_t>(check(i, DType::kI32));
  return {static_cast<const std::int32_t*>(inputs_[i]), count};
}

std::span<const std::uint32_t> CustomCall::uints(std::size_t i) const {
  const auto count = static_cast<std::size_t>(check(i, DType::kU32));
  return {static_cast<const std::uint32_t*>(inputs_[i]), count};
}

const Shape& CustomCall::shape(std::size_t i) const { return kernel_.inputs.at(i).shape; }

std::span<float> CustomCall::result() const {
  if (kernel_.result.dtype != DType::kF32) {
    throw DtypeError("custom op '" + kernel_.name + "': its result is " + to_string(kernel_.result),
                     SourceLocation());
  }
  return {static_cast<float*>(result_), static_cast<std::size_t>(numel(kernel_.result.shape))};
}

std::span<std::int32_t> CustomCall::result_ints() const {
  if (kernel_.result.dtype != DType::kI32) {
    throw DtypeError("custom op '" + kernel_.name + "': its result is " + to_string(kernel_.result),
                     SourceLocation());
  }
  return {static_cast<std::int32_t*>(result_),
          static_cast<std::size_t>(numel(kernel_.result.shape))};
}

struct CustomOp::State {
  Definition definition;
  std::mutex mutex;
  std::vector<std::pair<std::vector<Type>, std::int64_t>> kernels;  // by types of inputs

  // Returns the kernel for inputs of these types. Creates it on first use.
  std::int64_t kernel_for(const std::vector<Type>& inputs);
};

std::int64_t CustomOp::State::kernel_for(const std::vector<Type>& inputs) {
  const std::lock_guard lock(mutex);
  for (const auto& [types, number] : kernels) {
    if (types == inputs) return number;
  }
  auto kernel = std::make_shared<CustomKernel>();
  kernel->name = definition.name;
  kernel->inputs = inputs;
  const TensorType result = definition.infer(public_types(inputs));
  kernel->result = {result.dtype, result.shape};
  if (result.dtype != DType::kF32 && result.dtype != DType::kI32) {
    throw DtypeError("the result must be f32 or i32, infer returned " + to_string(kernel->result),
                     SourceLocation());
  }
  if (std::any_of(result.shape.begin(), result.shape.end(),
                  [](std::int64_t size) { return size < 1; })) {
    throw ShapeError("every size must be at least 1, infer returned " + to_string(result.shape),
                     SourceLocation());
  }
  if (definition.wgsl) kernel->wgsl = definition.wgsl(public_types(inputs));
  if (definition.cpu) {
    // The kernel outlives the call, so the pointer stays valid.
    kernel->cpu = [body = definition.cpu, self = kernel.get()](
                      std::span<const void* const> data, void* to, std::int64_t first,
                      std::int64_t last) { body(CustomCall(*self, data, to, first, last)); };
  }
  kernels.emplace_back(inputs, add_custom(kernel));
  return kernels.back().second;
}

CustomOp::CustomOp(Definition definition, Loc loc) : state_(std::make_shared<State>()) {
  const std::string what = "CustomOp '" + definition.name + "': ";
  if (definition.name.empty()) throw UserError("CustomOp: the name is empty", loc);
  if (!definition.infer) throw UserError(what + "infer is missing", loc);
  if (!definition.cpu && !definition.wgsl)
    throw UserError(what + "expected a cpu or wgsl body", loc);
  state_->definition = std::move(definition);
}

Tensor CustomOp::operator()(const std::vector<Tensor>& inputs, Loc loc) const {
  const Definition& definition = state_->definition;
  const std::string& name = definition.name;
  const Composite composite(name.c_str(), loc);
  if (inputs.empty() || inputs.size() > kMaxInputs) {
    throw UserError(name + ": expected 1 to " + std::to_string(kMaxInputs) + " inputs, got " +
                        std::to_string(inputs.size()),
                    loc);
  }
  const auto forward = [&](const std::vector<Tensor>& given) -> Tensor {
    OpContext ctx(name, loc);
    std::vector<Expr> operands;
    std::vector<Type> types;
    for (const Tensor& each : given) {
      operands.push_back(ctx.in(cast_if_autocast(each, DType::kF32, ctx.location())));
      types.push_back(operands.back().type());
    }
    std::int64_t kernel = 0;
    try {
      kernel = state_->kernel_for(types);
    } catch (const ShapeError& error) {
      throw ShapeError(name + ": " + error.message(), loc);
    } catch (const DtypeError& error) {
      throw DtypeError(name + ": " + error.message(), loc);
    }
    return ctx.out(
        op::apply(ctx.builder, ops::custom, operands, {{"kernel", kernel}, {"name", name}}));
  };
  if (!definition.backward) return forward(inputs);
  return custom_gradient(inputs, forward, definition.backward, loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
