// SPDX-License-Identifier: MIT
// Random numbers, based on Philox.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/numbers.h"
#include "base/sample_token.h"
#include "compile/runtime/host_random.h"
#include "ops/registry.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr double kSmallTau = 1e-6, kLargestScale = 1e37;  // of gumbel_softmax

// Uniform in (0, 1): odd multiples of 2^-24, so that the logarithm is finite and not 0.
Tensor open_uniform(const Shape& shape, Loc loc) {
  const Tensor whole = cast(bitwise_right_shift(random_bits(shape, loc), 9), DType::kF32);
  return (whole + 0.5) * std::exp2(-23.0);
}

Tensor gumbel(const Shape& shape, Loc loc) { return -log(-log(open_uniform(shape, loc))); }

void check_probability(const char* op, double p, const SourceLocation& location) {
  if (p >= 0 && p <= 1) return;
  throw UserError(std::string(op) + ": the probability must be in [0, 1], got " + number_text(p),
                  location);
}

}  // namespace

Tensor random_bits(const Shape& shape, Loc loc) {
  OpContext ctx("random_bits", loc);
  const ValueId seed = ctx.trace.scalar(kSeedScalar, DType::kU32, 0, ctx.location());
  const ValueId step = ctx.trace.scalar(kStepScalar, DType::kU32, 0, ctx.location());
  const auto stream = static_cast<double>(ctx.trace.random_ops++);
  const Composite composite("random_bits", loc);
  const Tensor index = reshape(iota({numel(shape)}, 0, DType::kU32, loc), shape, loc);
  return philox(index, stream, ctx.trace.tensor(seed), ctx.trace.tensor(step));
}

// The upper 24 bits of a word convert to an f32 in [0, 1) exactly.
Tensor rand(const Shape& shape, Loc loc) {
  const Composite composite("rand", loc);
  return cast(bitwise_right_shift(random_bits(shape, loc), 8), DType::kF32) * std::exp2(-24.0);
}

Tensor rand_like(Tensor x, Loc loc) {
  const Composite composite("rand_like", loc);
  return rand(x.shape(), loc);
}

// Values that would be rounded up to `hi` become the largest float below it.
Tensor uniform(const Shape& shape, double lo, double hi, Loc loc) {
  const Composite composite("uniform", loc);
  const auto first = static_cast<float>(lo), end = static_cast<float>(hi);
  if (!(first < end) || !std::isfinite(end - first)) {
    throw UserError("uniform: expected finite floats lo < hi, got " + number_text(lo) + " and " +
                        number_text(hi),
                    loc);
  }
  const float last = std::nextafter(end, first);
  return minimum(first + (end - first) * rand(shape, loc), last);
}

// Box-Muller: sqrt(-2 log(1 - u)) cos(2 pi v). 1 - u is in (0, 1], so the logarithm is finite.
Tensor randn(const Shape& shape, Loc loc) {
  const Composite composite("randn", loc);
  const Tensor radius = sqrt(-2.0 * log(1.0 - rand(shape, loc)));
  return radius * cos(2.0 * std::numbers::pi * rand(shape, loc));
}

Tensor randn_like(Tensor x, Loc loc) {
  const Composite composite("randn_like", loc);
  return randn(x.shape(), loc);
}

Tensor normal(const Shape& shape, double mean, double stddev, Loc loc) {
  const Composite composite("normal", loc);
  if (!(stddev >= 0)) {
    throw UserError(
        "normal: expected a standard deviation of at least 0, got " + number_text(stddev), loc);
  }
  return mean + stddev * randn(shape, loc);
}

Tensor exponential(const Shape& shape, double rate, Loc loc) {
  const Composite composite("exponential", loc);
  if (!(rate > 0)) {
    throw UserError("exponential: expected a rate above 0, got " + number_text(rate), loc);
  }
  return log(open_uniform(shape, loc)) * (-1.0 / rate);
}

Tensor bernoulli(const Shape& shape, double p, Loc loc) {
  const Composite composite("bernoulli", loc);
  check_probability("bernoulli", p, loc);
  return cast(lt(rand(shape, loc), p), DType::kF32);
}

Tensor bernoulli(Tensor p, Loc loc) {
  const Composite composite("bernoulli", loc);
  return cast(lt(rand(p.shape(), loc), p), DType::kF32);
}

Tensor randint(const Shape& shape, std::int64_t lo, std::int64_t hi, Loc loc) {
  const Composite composite("randint", loc);
  constexpr std::int64_t kMinInt32 = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
  if (lo < kMinInt32 || hi <= lo || hi > kMaxInt32 + 1 || hi - lo > kMaxInt32) {
    throw UserError("randint: expected i32 numbers lo < hi less than 2^31 apart, got " +
                        std::to_string(lo) + " and " + std::to_string(hi),
                    loc);
  }
  return cast(fmod(random_bits(shape, loc), hi - lo), DType::kI32) + lo;
}

// Element i is the position of word i in sorted order; equal words keep their order.
Tensor randperm(std::int64_t n, Loc loc) {
  const Composite composite("randperm", loc);
  return argsort(random_bits({n}, loc), 0, false, loc);
}

// Gumbel-max trick (Gumbel 1954; Maddison, Tarlow and Minka 2014).
Tensor categorical(Tensor logits, int axis, Loc loc) {
  const Composite composite("categorical", loc);
  return argmax(logits + gumbel(logits.shape(), loc), axis, false, loc);
}

Tensor multinomial(Tensor weights, std::int64_t n, bool replacement, Loc loc) {
  const Composite composite("multinomial", loc);
  if (weights.rank() < 1 || n < 1) {
    throw ShapeError("multinomial: expected weights [..., C] and at least one draw, got " +
                         to_string(weights.shape()) + " and " + std::to_string(n),
                     loc);
  }
  // The result is -1 if no positive weight is left, or if a weight is negative.
  const Tensor fits = all(ge(weights, 0.0), -1, true, loc);
  const auto drawn = [&](Tensor index) {
    const Tensor weight = gather(weights, -1, index, loc);
    return where(fits && gt(weight, 0.0), index, -1);
  };
  if (!replacement) {
    if (n > weights.shape().back()) {
      throw ShapeError("multinomial: cannot draw " + std::to_string(n) +
                           " without replacement from " + to_string(weights.shape()),
                       loc);
    }
    // Gumbel-top-k trick (Vieira 2014; Kool, van Hoof and Welling 2019).
    return drawn(topk(log(weights) + gumbel(weights.shape(), loc), n, -1, true, loc).indices);
  }
  Shape all = weights.shape();
  all.insert(all.end() - 1, n);
  const Tensor logits = unsqueeze(log(weights), -2, loc);
  return drawn(argmax(logits + gumbel(all, loc), -1, false, loc));
}

Tensor sample_tokens(Tensor logits, Tensor uniform, Tensor controls, Loc loc) {
  OpContext ctx("sample_tokens", loc);
  Shape rows = logits.shape();
  const std::int64_t tokens = rows.empty() ? 0 : rows.back();
  if (!rows.empty()) rows.pop_back();
  Shape wanted = rows;
  wanted.push_back(kSampleControls);
  const bool fits = tokens >= 1 && tokens <= kMaxSampledTokens;
  if (!fits || uniform.shape() != rows || controls.shape() != wanted) {
    throw ShapeError("sample_tokens: expected logits [..., V] with V of at most " +
                         std::to_string(kMaxSampledTokens) + ", uniform [...] and controls [..., " +
                         std::to_string(kSampleControls) + "], got " + to_string(logits.shape()) +
                         ", " + to_string(uniform.shape()) + " and " + to_string(controls.shape()),
                     loc);
  }
  const std::int64_t count = numel(rows);
  const Expr sampled = op::apply(ctx.builder, ops::sample_tokens,
                                 {op::reshape(ctx.in(cast(logits, f32)), {count, tokens}),
                                  op::reshape(ctx.in(uniform), {count}),
                                  op::reshape(ctx.in(controls), {count, kSampleControls})},
                                 {});
  return ctx.out(op::reshape(sampled, rows));
}

Tensor gumbel_softmax(Tensor x, double tau, bool hard, int axis, Loc loc) {
  const Composite composite("gumbel_softmax", loc);
  if (!(tau > 0)) {
    throw UserError("gumbel_softmax: tau must be more than 0, got " + number_text(tau), loc);
  }
  const Upcast downcast(x);
  Tensor scores = x + gumbel(x.shape(), loc);
  // Prevents the maximum from becoming infinite for a small tau.
  if (tau < kSmallTau) scores = scores - detached_max(scores, axis, loc);
  const Tensor soft = downcast(softmax(scores * std::min(1.0 / tau, kLargestScale), axis, loc));
  if (!hard) return soft;
  const auto d = static_cast<int>(resolve_axis(axis, x.shape(), "gumbel_softmax", loc));
  const Tensor best = eq(iota(x.shape(), d, i32, loc), argmax(soft, d, true, loc));
  return cast(best, soft.dtype()) + (soft - detach(soft));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
