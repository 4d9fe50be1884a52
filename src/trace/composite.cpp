// SPDX-License-Identifier: MIT
// Composites: ops written with other ops. Passes and backends do not know them; autodiff and fusion
// apply to the ops inside. This file has reductions and ops made of them.
#include <limits>
#include <vector>

#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/ops/autograd.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Returns the number of elements that are reduced to one. Must be called within a composite.
std::int64_t reduced_count(const Tensor& x, const std::vector<int>& axes) {
  const OpContext ctx({}, {});
  std::int64_t count = 1;
  const Shape shape = x.shape();
  for (const std::int64_t axis : resolve_axes(axes, shape, ctx.name(), ctx.location()))
    count *= shape[static_cast<size_t>(axis)];
  return count;
}

}  // namespace

void upcast(const std::vector<Tensor*>& tensors) {
  for (Tensor* const tensor : tensors) {
    if (tensor->dtype() == DType::kF16) *tensor = cast(*tensor, DType::kF32);
  }
}

Upcast::Upcast(const std::vector<Tensor*>& tensors) : half_(false) {
  bool all = true;
  for (const Tensor* const tensor : tensors) {
    half_ |= tensor->dtype() == DType::kF16;
    all &= tensor->dtype() != DType::kF32;
  }
  half_ &= all;
  upcast(tensors);
}

void demand_shape(const char* op, const char* name, const Tensor& given, const Shape& expected,
                  const SourceLocation& location) {
  if (given.shape() == expected) return;
  throw ShapeError(std::string(op) + ": expected " + name + " " + to_string(expected) + ", got " +
                       to_string(given.shape()),
                   location);
}

Tensor detached_max(Tensor x, Axes axes, Loc loc) {
  const Tensor largest = detach(max(x, std::move(axes), true, loc));
  return where(isfinite(largest), largest, 0.0);
}

Tensor mean(Tensor x, Axes axes, bool keepdim, Loc loc) {
  const Composite composite("mean", loc);
  const Upcast downcast(x);
  if (x.dtype() != DType::kF32) {
    const OpContext ctx("mean", loc);
    throw DtypeError(ctx.name() + ": expected f32, got " + std::string(to_string(x.dtype())),
                     ctx.location());
  }
  const std::int64_t count = reduced_count(x, axes.list);
  return downcast(sum(x, std::move(axes), keepdim, loc) * (1.0 / static_cast<double>(count)));
}

Tensor var(Tensor x, Axes axes, int correction, bool keepdim, Loc loc) {
  const Composite composite("var", loc);
  const Upcast downcast(x);
  const std::int64_t count = reduced_count(x, axes.list);
  if (count <= correction) {
    throw ShapeError(OpContext("var", loc).name() + ": " + std::to_string(count) +
                         " elements with a correction of " + std::to_string(correction) +
                         " leave no degrees of freedom",
                     loc);
  }
  const Tensor centred = x - mean(x, axes, true, loc);
  // Correct for the rounding error of the mean.
  const Tensor rest = square(detach(sum(centred, axes, keepdim, loc)));
  const Tensor squares = sum(square(centred), std::move(axes), keepdim, loc);
  return downcast((squares - rest * (1.0 / static_cast<double>(count))) *
                  (1.0 / static_cast<double>(count - correction)));
}

// log sum exp(x) = m + log sum exp(x - m), where m is the maximum.
Tensor logsumexp(Tensor x, Axes axes, bool keepdim, Loc loc) {
  const Composite composite("logsumexp", loc);
  const Upcast downcast(x);
  const Tensor shift = detached_max(x, axes, loc);
  const Tensor powers = sum(exp(x - shift), axes, true, loc), nothing = eq(powers, 0.0);
  // In a row of -inf, take the logarithm of 1: log(0) has no finite gradient.
  const Tensor total = where(nothing, -std::numeric_limits<double>::infinity(),
                             log(where(nothing, 1.0, powers)) + shift);
  return downcast(keepdim ? total : sum(total, std::move(axes), false, loc));
}

// Subtracts the maximum first; the logarithm would lose digits if it were added to it.
Tensor log_softmax(Tensor x, int axis, Loc loc) {
  const Composite composite("log_softmax", loc);
  const Upcast downcast(x);
  const Tensor below = x - detached_max(x, axis, loc);
  return downcast(below - log(sum(exp(below), axis, true, loc)));
}

// Divides by 1 if all elements are masked, so that such a row is 0.
Tensor masked_softmax(Tensor x, Tensor mask, int axis, Loc loc) {
  const Composite composite("masked_softmax", loc);
  const Upcast downcast(x);
  const Tensor scores = where(mask, x, -std::numeric_limits<double>::infinity());
  const Tensor e = exp(scores - detached_max(scores, axis, loc));
  const Tensor total = sum(e, axis, true, loc);
  return downcast(e / where(eq(total, 0.0), 1.0, total));
}

Tensor softmax(Tensor x, int axis, Loc loc) {
  const Composite composite("softmax", loc);
  const Upcast downcast(x);
  return downcast(custom_gradient(
      {x},
      [&](const std::vector<Tensor>&) {
        const Tensor e = exp(x - detached_max(x, axis, loc));
        return e / sum(e, axis, true, loc);
      },
      [&](const std::vector<Tensor>&, Tensor y, Tensor dy) {
        return std::vector<Tensor>{y * (dy - sum(dy * y, axis, true, loc))};
      },
      loc));
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
  const MixedProduct downcast({&x, &weight}, x.dtype() == DType::kF16);
  Tensor y = matmul(vector ? unsqueeze(x, 0, loc) : x, transpose(weight, 0, 1, loc), loc);
  if (bias) y = y + *bias;
  return downcast(vector ? squeeze(y, 0, loc) : y);
}

Tensor unpack_bytes(Tensor words, Loc loc) {
  const Composite composite("unpack_bytes", loc);
  if (words.dtype() != DType::kU32) {
    throw DtypeError("unpack_bytes: expected u32, got " + std::string(to_string(words.dtype())),
                     loc);
  }
  Shape four = words.shape(), flat = four;
  if (four.empty()) throw ShapeError("unpack_bytes: expected at least one axis", loc);
  four.push_back(4);
  flat.back() *= 4;
  const Tensor wide = broadcast_to(unsqueeze(words, -1, loc), four, loc);
  const Tensor amount = iota(four, -1, DType::kU32, loc) * 8;
  return reshape(cast(bitwise_and(bitwise_right_shift(wide, amount), 255), DType::kF32), flat, loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
