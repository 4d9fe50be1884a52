// SPDX-License-Identifier: MIT
// Composites: written with other ops, unknown to every
// other room, differentiated and fused for free.
#include <cmath>
#include <limits>
#include <numbers>

#include "api/trace.h"
#include "base/numbers.h"
#include "tensorgrad/ops.h"

namespace tensorgrad {
namespace {

// Elements that each element of the result is made of. Within a composite.
std::int64_t reduced_count(const Tensor& x, const std::vector<int>& axes) {
  const OpContext ctx({}, {});
  std::int64_t count = 1;
  const Shape shape = x.shape();
  for (const std::int64_t axis : resolve_axes(axes, shape, ctx.name(), ctx.site()))
    count *= shape[static_cast<size_t>(axis)];
  return count;
}

// The largest element, as a number to subtract: not differentiated, and finite.
Tensor shift_of(Tensor x, Axes axes, Loc loc) {
  const Tensor largest = detach(max(x, std::move(axes), true, loc));
  return where(isfinite(largest), largest, 0.0);
}

Tensor reduced(Tensor x, Reduction reduction, Loc loc) {
  switch (reduction) {
    case Reduction::kMean: return mean(x, {}, false, loc);
    case Reduction::kSum: return sum(x, {}, false, loc);
    case Reduction::kNone: return x;
  }
  return x;
}

}  // namespace

Tensor mean(Tensor x, Axes axes, bool keepdim, Loc loc) {
  const Composite composite("mean", loc);
  if (x.dtype() != DType::kF32) {
    const OpContext ctx("mean", loc);
    throw DtypeError(ctx.name() + ": f32 expected, got " + std::string(to_string(x.dtype())),
                     ctx.site());
  }
  const std::int64_t count = reduced_count(x, axes.list);
  return sum(x, std::move(axes), keepdim, loc) * (1.0 / static_cast<double>(count));
}

Tensor var(Tensor x, Axes axes, int correction, bool keepdim, Loc loc) {
  const Composite composite("var", loc);
  const std::int64_t count = reduced_count(x, axes.list);
  if (count <= correction) {
    throw ShapeError(OpContext("var", loc).name() + ": " + std::to_string(count) +
                         " elements and a correction of " + std::to_string(correction) +
                         " leave nothing to divide by",
                     loc);
  }
  const Tensor centred = x - mean(x, axes, true, loc);
  return sum(square(centred), std::move(axes), keepdim, loc) *
         (1.0 / static_cast<double>(count - correction));
}

// log sum exp(x) = m + log sum exp(x - m), m the largest element
Tensor logsumexp(Tensor x, Axes axes, bool keepdim, Loc loc) {
  const Composite composite("logsumexp", loc);
  const Tensor shift = shift_of(x, axes, loc);
  const Tensor total = log(sum(exp(x - shift), axes, true, loc)) + shift;
  return keepdim ? total : sum(total, std::move(axes), false, loc);
}

Tensor log_softmax(Tensor x, int axis, Loc loc) {
  const Composite composite("log_softmax", loc);
  return x - logsumexp(x, axis, true, loc);
}

Tensor softmax(Tensor x, int axis, Loc loc) {
  const Composite composite("softmax", loc);
  const Tensor e = exp(x - shift_of(x, axis, loc));
  return e / sum(e, axis, true, loc);
}

Tensor gelu(Tensor x, Gelu form, Loc loc) {
  const Composite composite("gelu", loc);
  if (form == Gelu::kExact) return 0.5 * x * (1.0 + erf(x * (1.0 / std::numbers::sqrt2)));
  const double c = std::sqrt(2.0 / std::numbers::pi);
  return 0.5 * x * (1.0 + tanh(c * (x + 0.044715 * x * x * x)));
}

Tensor silu(Tensor x, Loc loc) {
  const Composite composite("silu", loc);
  return x * sigmoid(x);
}

Tensor layer_norm(Tensor x, std::optional<Tensor> weight, std::optional<Tensor> bias, double eps,
                  Loc loc) {
  const Composite composite("layer_norm", loc);
  for (const std::optional<Tensor>& each : {weight, bias}) {
    if (each && each->shape() != Shape{x.size(-1)}) {
      throw ShapeError("layer_norm: weight and bias must be [" + std::to_string(x.size(-1)) +
                           "] for x " + to_string(x.shape()) + ", got " + to_string(each->shape()),
                       loc);
    }
  }
  const Tensor centred = x - mean(x, -1, true, loc);
  const Tensor variance = mean(square(centred), -1, true, loc);
  Tensor y = centred * rsqrt(variance + eps);
  if (weight) y = y * *weight;
  if (bias) y = y + *bias;
  return y;
}

Tensor linear(Tensor x, Tensor weight, std::optional<Tensor> bias, Loc loc) {
  const Composite composite("linear", loc);
  if (weight.rank() != 2 || x.rank() < 1 || x.size(-1) != weight.size(1)) {
    throw ShapeError("linear: inner sizes differ: x " + to_string(x.shape()) + ", weight " +
                         to_string(weight.shape()) + " ([out, in])",
                     loc);
  }
  const bool vector = x.rank() == 1;
  if (bias && bias->shape() != Shape{weight.size(0)}) {
    throw ShapeError("linear: bias must be " + to_string(Shape{weight.size(0)}) + " for weight " +
                         to_string(weight.shape()) + ", got " + to_string(bias->shape()),
                     loc);
  }
  Tensor y = matmul(vector ? unsqueeze(x, 0, loc) : x, transpose(weight, 0, 1, loc), loc);
  if (bias) y = y + *bias;
  return vector ? squeeze(y, 0, loc) : y;
}

Tensor mse(Tensor a, Tensor b, Reduction reduction, Loc loc) {
  const Composite composite("mse", loc);
  if (a.shape() != b.shape()) {  // broadcasting here is nearly always a mistake
    throw ShapeError(
        "mse: shapes differ: a " + to_string(a.shape()) + ", b " + to_string(b.shape()), loc);
  }
  return reduced(square(a - b), reduction, loc);
}

// log(sum exp(logits)) - logits[target], the target picked by a gather along the classes
Tensor cross_entropy(Tensor logits, Tensor targets, Reduction reduction, Loc loc) {
  const Composite composite("cross_entropy", loc);
  Shape expected = logits.shape();
  if (expected.empty()) throw ShapeError("cross_entropy: logits [..., C] expected, got []", loc);
  expected.pop_back();
  if (targets.dtype() != DType::kI32) {
    throw DtypeError(
        "cross_entropy: targets must be i32, got " + std::string(to_string(targets.dtype())), loc);
  }
  if (targets.shape() != expected) {
    throw ShapeError("cross_entropy: targets must be " + to_string(expected) + " for logits " +
                         to_string(logits.shape()) + ", got " + to_string(targets.shape()),
                     loc);
  }
  const Tensor picked = gather(logits, -1, unsqueeze(targets, -1, loc), loc);
  return reduced(squeeze(logsumexp(logits, -1, true, loc) - picked, -1, loc), reduction, loc);
}

Tensor random_bits(const Shape& shape, Loc loc) {
  OpContext ctx("random_bits", loc);
  const ValueId seed = ctx.trace.scalar("_seed", DType::kU32, 0, ctx.site());
  const ValueId step = ctx.trace.scalar("_step", DType::kU32, 0, ctx.site());
  const auto stream = static_cast<double>(ctx.trace.random_ops++);
  const Composite composite("random_bits", loc);
  const Tensor index = reshape(iota({numel(shape)}, 0, DType::kU32, loc), shape, loc);
  return philox(index, stream, ctx.trace.tensor(seed), ctx.trace.tensor(step));
}

// The upper 24 bits of a word are an f32 in [0, 1) exactly.
Tensor rand(const Shape& shape, Loc loc) {
  const Composite composite("rand", loc);
  return cast(bitwise_right_shift(random_bits(shape, loc), 8), DType::kF32) * std::exp2(-24.0);
}

// sqrt(-2 log(1 - u)) cos(2 pi v): 1 - u lies in (0, 1], so the logarithm is finite
Tensor randn(const Shape& shape, Loc loc) {
  const Composite composite("randn", loc);
  const Tensor radius = sqrt(-2.0 * log(1.0 - rand(shape, loc)));
  return radius * cos(2.0 * std::numbers::pi * rand(shape, loc));
}

Tensor dropout(Tensor x, double p, Loc loc) {
  const Composite composite("dropout", loc);
  if (!(p >= 0 && p < 1)) {
    throw UserError("dropout: the probability must lie in [0, 1), got " + number_text(p), loc);
  }
  if (p == 0) return x;
  return where(ge(rand(x.shape(), loc), p), x * (1.0 / (1.0 - p)), 0.0);
}

Tensor unpack_bytes(Tensor words, Loc loc) {
  const Composite composite("unpack_bytes", loc);
  if (words.dtype() != DType::kU32) {
    throw DtypeError("unpack_bytes: u32 expected, got " + std::string(to_string(words.dtype())),
                     loc);
  }
  Shape four = words.shape(), flat = four;
  if (four.empty()) throw ShapeError("unpack_bytes: at least one axis expected", loc);
  four.push_back(4);
  flat.back() *= 4;
  const Tensor wide = broadcast_to(unsqueeze(words, -1, loc), four, loc);
  const Tensor amount = iota(four, -1, DType::kU32, loc) * 8;
  return reshape(cast(bitwise_and(bitwise_right_shift(wide, amount), 255), DType::kF32), flat, loc);
}

}  // namespace tensorgrad
