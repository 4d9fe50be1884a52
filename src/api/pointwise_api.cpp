// SPDX-License-Identifier: MIT
// The pointwise ops as public functions and operators: numbers take the other side's type, shapes
// are broadcast, and the row's own rule checks the rest.
#include <vector>

#include "api/trace.h"
#include "base/numbers.h"
#include "ops/pointwise.h"
#include "ops/structured.h"
#include "tensorgrad/ops.h"

namespace tensorgrad {
namespace {

Site site_of(const std::vector<const Operand*>& operands) { return operands.front()->site; }

// The type that numbers take: that of the first tensor among those of the same role. A row whose
// first operand alone is a condition gives its role to the others.
DType number_type(OpContext& ctx, const OpDef& def, const std::vector<const Operand*>& operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (&def == &ops::where && i == 0) continue;
    if (!operands[i]->is_number) return ctx.in(operands[i]->tensor).dtype();
  }
  if (&def == &ops::philox) return DType::kU32;
  return DType::kF32;
}

Ex number(OpContext& ctx, const Operand& operand, DType dtype) {
  check_number(ctx, operand.number, dtype);
  return op::constant(ctx.builder, operand.number, dtype);
}

Tensor pointwise(const OpDef& def, const std::vector<const Operand*>& operands, Attrs attrs = {}) {
  OpContext ctx(def.name, site_of(operands));
  const DType dtype = number_type(ctx, def, operands);
  std::vector<Ex> inputs;
  Shape shape;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool condition = &def == &ops::where && i == 0;
    inputs.push_back(operands[i]->is_number
                         ? number(ctx, *operands[i], condition ? DType::kBool : dtype)
                         : ctx.in(operands[i]->tensor));
    shape = broadcast_shapes(shape, inputs.back().shape(), ctx.name(), ctx.site());
  }
  for (Ex& input : inputs) input = op::broadcast(input, shape);
  return ctx.out(op::apply(ctx.builder, def, inputs, std::move(attrs)));
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

Operand::Operand(const Parameter& parameter, Loc loc) : site(loc) {
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

Tensor clamp(Operand x, double lo, double hi) {
  const Composite composite("clamp", x.site);
  if (!(lo <= hi)) {
    throw UserError("clamp: the lower bound " + number_text(lo) + " is above the upper bound " +
                        number_text(hi),
                    x.site);
  }
  const Tensor inside = logical_and(ge(x, lo), le(x, hi));
  // NaN is inside: neither below nor above.
  const Tensor limited = where(lt(x, lo), lo, where(gt(x, hi), hi, x));
  return where(inside, x, limited);
}

}  // namespace tensorgrad
