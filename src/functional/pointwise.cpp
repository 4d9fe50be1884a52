// SPDX-License-Identifier: MIT
// Public functions and operators of the pointwise ops. Numbers take the type of the tensor
// operands, shapes are broadcast, and the op's own rule checks the rest.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/numbers.h"
#include "ops/pointwise.h"
#include "ops/structured.h"
#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

SourceLocation first_location(const std::vector<const Operand*>& operands) {
  return operands.front()->location;
}

// Returns the type of number operands: that of the first tensor operand. The condition of where()
// does not count.
DType number_type(OpContext& ctx, const OpDef& def, const std::vector<const Operand*>& operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (&def == &ops::where && i == 0) continue;
    if (!operands[i]->is_number) return ctx.in(operands[i]->tensor).dtype();
  }
  if (&def == &ops::philox) return DType::kU32;
  return DType::kF32;
}

Expr number(OpContext& ctx, const Operand& operand, DType dtype) {
  check_number(ctx, operand.number, dtype);
  return op::constant(ctx.builder, operand.number, dtype);
}

// Casts f16 tensors to f32 if one of the tensors is f32.
void promote(std::vector<Expr>& values) {
  const bool any =
      std::any_of(values.begin(), values.end(), [](Expr x) { return x.dtype() == DType::kF32; });
  for (Expr& value : values) {
    if (any && value.dtype() == DType::kF16) value = op::cast(value, DType::kF32);
  }
}

bool is_logic(const OpDef& def) {
  return &def == &ops::logical_and || &def == &ops::logical_or || &def == &ops::logical_xor ||
         &def == &ops::logical_not;
}

// Returns the logical op that a bitwise op, minimum or maximum stands for if applied to booleans,
// or null.
const OpDef* logical_counterpart(const OpDef& def) {
  if (&def == &ops::bitwise_and || &def == &ops::minimum) return &ops::logical_and;
  if (&def == &ops::bitwise_or || &def == &ops::maximum) return &ops::logical_or;
  if (&def == &ops::bitwise_xor) return &ops::logical_xor;
  return &def == &ops::bitwise_not ? &ops::logical_not : nullptr;
}

// With f16 tensors, numbers are computed with as f32, and the result is f32 before it is rounded.
Tensor pointwise(const OpDef& called, const std::vector<const Operand*>& operands,
                 Attrs attrs = {}) {
  OpContext ctx(called.name, first_location(operands));
  const bool is_bool = number_type(ctx, called, operands) == DType::kBool;
  const OpDef* logic = is_bool ? logical_counterpart(called) : nullptr;
  const OpDef& def = logic ? *logic : called;
  std::vector<Expr> tensors;
  for (const Operand* operand : operands) {
    if (!operand->is_number) tensors.push_back(ctx.in(operand->tensor));
  }
  if (&def == &ops::where) promote(tensors);
  const bool half = !op::takes_f16(def) && op::upcast(tensors);
  DType dtype = is_logic(def) ? DType::kBool : number_type(ctx, def, operands);
  for (Expr& tensor : tensors) {
    if (is_logic(def) && tensor.dtype() != DType::kBool) tensor = op::ne(tensor, 0);
  }
  if (!op::takes_f16(def)) dtype = register_dtype(dtype);
  std::vector<Expr> inputs;
  Shape shape;
  auto tensor = tensors.begin();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool condition = &def == &ops::where && i == 0;
    inputs.push_back(operands[i]->is_number
                         ? number(ctx, *operands[i], condition ? DType::kBool : dtype)
                         : *tensor++);
    shape = broadcast_shapes(shape, inputs.back().shape(), ctx.name(), ctx.location());
  }
  for (Expr& input : inputs) input = op::broadcast(input, shape);
  return ctx.out(op::downcast(op::apply(ctx.builder, def, inputs, std::move(attrs)), half));
}

}  // namespace

#define POINTWISE1(name, ...) \
  Tensor name(Operand a) { return pointwise(ops::name, {&a}); }
#define POINTWISE2(name, ...) \
  Tensor name(Operand a, Operand b) { return pointwise(ops::name, {&a, &b}); }
#define POINTWISE3(name, ...) \
  Tensor name(Operand a, Operand b, Operand c) { return pointwise(ops::name, {&a, &b, &c}); }
#define POINTWISE4(name, ...)                               \
  Tensor name(Operand a, Operand b, Operand c, Operand d) { \
    return pointwise(ops::name, {&a, &b, &c, &d});          \
  }
#define POINTWISE_TO(name, ...)                                                       \
  Tensor name(Operand a, DType dtype) {                                               \
    return pointwise(ops::name, {&a}, {{"dtype", static_cast<std::int64_t>(dtype)}}); \
  }
#include "ops/pointwise.def"

Operand::Operand(const Parameter& parameter, Loc loc) : location(loc) {
  tensor = parameter.tensor(loc);
}

Tensor operator+(Operand a, Operand b) { return add(a, b); }
Tensor operator-(Operand a, Operand b) { return sub(a, b); }
Tensor operator*(Operand a, Operand b) { return mul(a, b); }
Tensor operator/(Operand a, Operand b) { return div(a, b); }
Tensor operator-(Operand a) { return neg(a); }
Tensor operator<(Operand a, Operand b) { return lt(a, b); }
Tensor operator<=(Operand a, Operand b) { return le(a, b); }
Tensor operator>(Operand a, Operand b) { return gt(a, b); }
Tensor operator>=(Operand a, Operand b) { return ge(a, b); }
Tensor operator==(Operand a, Operand b) { return eq(a, b); }
Tensor operator!=(Operand a, Operand b) { return ne(a, b); }
Tensor operator&&(Operand a, Operand b) { return logical_and(a, b); }
Tensor operator||(Operand a, Operand b) { return logical_or(a, b); }
Tensor operator!(Operand a) { return logical_not(a); }

namespace {

bool is_whole(const Operand& x) {
  if (x.is_number) return false;
  const DType dtype = x.tensor.dtype();
  return dtype == DType::kI32 || dtype == DType::kU32;
}

}  // namespace

Tensor clamp(Operand x, double lo, double hi) {
  const Composite composite("clamp", x.location);
  if (!(lo <= hi)) {
    throw UserError("clamp: the lower bound " + number_text(lo) + " is above the upper bound " +
                        number_text(hi),
                    x.location);
  }
  if (is_whole(x)) {
    const bool has_sign = x.tensor.dtype() == DType::kI32;
    const Tensor from = lo <= (has_sign ? -0x1p31 : 0) ? x.tensor : maximum(x, lo);
    return hi >= (has_sign ? 0x1p31 : 0x1p32) - 1 ? from : minimum(from, hi);
  }
  // Keeps NaN: comparisons with NaN may be true on GPUs.
  const Tensor inside = logical_or(isnan(x), logical_and(ge(x, lo), le(x, hi)));
  const Tensor limited = where(lt(x, lo), lo, where(gt(x, hi), hi, x));
  return where(inside, x, limited);
}

Tensor clamp(Operand x, Operand lo, Operand hi) {
  const Composite composite("clamp", x.location);
  return minimum(maximum(x, lo), hi);
}

namespace {

std::vector<Tensor*> tensors_of(std::initializer_list<Operand*> operands) {
  std::vector<Tensor*> tensors;
  for (Operand* const operand : operands) {
    if (!operand->is_number) tensors.push_back(&operand->tensor);
  }
  return tensors;
}

}  // namespace

Tensor isinf(Operand x) {
  const Composite composite("isinf", x.location);
  return !(isfinite(x) || isnan(x));
}

Tensor nan_to_num(Operand x, double nan, double posinf, double neginf) {
  const Composite composite("nan_to_num", x.location);
  if (is_whole(x)) return x.tensor;
  const Upcast downcast(tensors_of({&x}));
  const Tensor infinite = where(gt(x, 0.0), posinf, neginf);
  return downcast(where(isfinite(x), x, where(isnan(x), nan, infinite)));
}

Tensor lerp(Operand a, Operand b, Operand weight) {
  const Composite composite("lerp", a.location);
  const Upcast downcast(tensors_of({&a, &b, &weight}));
  const Tensor way = b - a;
  return downcast(where(lt(abs(weight), 0.5), a + weight * way, b - way * (1.0 - weight)));
}

namespace {

// True if fmod(a, b) must be shifted by b to have the sign of b.
Tensor other_sign(Operand rest, Operand b) {
  return ne(rest, 0.0) && logical_xor(lt(rest, 0.0), lt(b, 0.0));
}

}  // namespace

Tensor floor_divide(Operand a, Operand b) {
  const Composite composite("floor_divide", a.location);
  const Upcast downcast(tensors_of({&a, &b}));
  const Tensor rest = fmod(a, b), less = other_sign(rest, b);
  if (register_dtype(rest.dtype()) != DType::kF32) {
    const Tensor whole = a / b;
    return detach(where(less, whole - 1, whole));
  }
  const Tensor whole = (a - rest) / b;
  return downcast(detach(where(eq(b, 0.0), a / b, round(where(less, whole - 1.0, whole)))));
}

Tensor remainder(Operand a, Operand b) {
  const Composite composite("remainder", a.location);
  const Tensor rest = fmod(a, b);
  return where(other_sign(rest, b), rest + b, rest);
}

// Scales by the power of two of the larger operand, so that no square overflows or underflows.
Tensor hypot(Operand a, Operand b) {
  const Composite composite("hypot", a.location);
  const Upcast downcast(tensors_of({&a, &b}));
  const Tensor size = maximum(abs(a), abs(b));
  const Tensor usual = size > 0.0 && isfinite(size);
  const Tensor unit = detach(where(usual, exp2(floor(log2(where(usual, size, 1.0)))), 1.0));
  const Tensor length = unit * sqrt(square(a / unit) + square(b / unit));
  // If an operand is infinite, the result is infinite even if the other one is NaN.
  const auto infinite = [](const Operand& leg) { return !isfinite(leg) && !isnan(leg); };
  return downcast(
      where(infinite(a) || infinite(b), std::numeric_limits<double>::infinity(), length));
}

Tensor log10(Operand x) {
  const Composite composite("log10", x.location);
  const Upcast downcast(tensors_of({&x}));
  return downcast(log2(x) * std::log10(2.0));
}

namespace {

// Returns sqrt(1 - x^2), accurate near 1. The gradient is that of the plain formula, infinite at 1.
Tensor other_leg(Operand x) {
  const Tensor squared = square(x);
  return sqrt(detach((1.0 - x) * (1.0 + x)) + (detach(squared) - squared));
}

}  // namespace

Tensor asin(Operand x) {
  const Composite composite("asin", x.location);
  const Upcast downcast(tensors_of({&x}));
  return downcast(atan2(x, other_leg(x)));
}

Tensor acos(Operand x) {
  const Composite composite("acos", x.location);
  const Upcast downcast(tensors_of({&x}));
  return downcast(atan2(other_leg(x), x));
}

Tensor atan(Operand x) {
  const Composite composite("atan", x.location);
  return atan2(x, 1.0);
}

// Computes 1 + 2 sinh(x/2)^2, which does not overflow before the result does. Its gradient is exact
// near 0.
Tensor cosh(Operand x) {
  const Composite composite("cosh", x.location);
  const Upcast downcast(tensors_of({&x}));
  return downcast(1.0 + 2.0 * square(sinh(x * 0.5)));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
