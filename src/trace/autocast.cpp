// SPDX-License-Identifier: MIT
// Mixed precision: decides which values of a traced function are f16. This happens when ops are
// called and not in a pass. The function thus sees the actual types of its tensors, and autodiff
// returns gradients of these types.
#include "tensorgrad/ops/autocast.h"

#include "ops/registry.h"
#include "tensorgrad/ops/autograd.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

bool is_parameter(const Tensor& x) {
  const Graph& graph = x.trace()->graph;
  ValueId id = x.id();
  while (graph[id].op->kind == OpKind::kView) id = graph[id].inputs[0];
  return graph[id].op == &ops::parameter;
}

Tensor there_and_back(const Tensor& x) { return cast(cast(x, DType::kF16), DType::kF32); }

// Rounds x to f16 precision. The gradient of a parameter is accumulated in f32 and is not rounded.
Tensor rounded(const Tensor& x) {
  if (!is_parameter(x)) return there_and_back(x);
  return custom_gradient(
      {x}, [](const std::vector<Tensor>& in) { return there_and_back(in[0]); },
      [](const std::vector<Tensor>&, Tensor, Tensor dy) { return std::vector<Tensor>{dy}; });
}

}  // namespace

Autocast::Autocast(bool enabled, Loc loc)
    : trace_(&Trace::current("Autocast", loc)), before_(trace_->autocast) {
  trace_->autocast = enabled;
}

Autocast::~Autocast() { trace_->autocast = before_; }

bool autocasts() {
  const Trace* const trace = Trace::active();
  return trace != nullptr && trace->autocast;
}

MixedProduct::MixedProduct(std::initializer_list<Tensor*> operands, bool half)
    : half_(half || autocasts()), rounds_(autocasts()), within_(false) {
  for (Tensor* const operand : operands) {
    const DType dtype = operand->dtype();
    if (dtype == DType::kF16) *operand = cast(*operand, DType::kF32);
    if (dtype == DType::kF32 && rounds_) *operand = rounded(*operand);
  }
}

Tensor MixedProduct::operator()(Tensor result) const {
  return half_ ? cast(result, DType::kF16) : result;
}

Tensor cast_if_autocast(Tensor x, DType dtype, const SourceLocation& location) {
  if (!autocasts() || x.trace() == nullptr) return x;
  const DType given = x.dtype();
  const bool real = register_dtype(dtype) == DType::kF32 && register_dtype(given) == DType::kF32;
  if (!real || given == dtype) return x;
  Operand operand(x);
  operand.location = location;
  return cast(operand, dtype);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
