// SPDX-License-Identifier: MIT
// Ops of state space models.
#include "tensorgrad/functional/state_space.h"

#include <algorithm>

#include "functional/documents.h"
#include "ops/registry.h"
#include "ops/selective_scan.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

void demand_steps(const char* op, const char* name, const Tensor& x, Loc loc) {
  if (register_dtype(x.dtype()) != DType::kF32) {
    throw DtypeError(std::string(op) + ": expected f32, got " + std::string(to_string(x.dtype())),
                     loc);
  }
  if (x.rank() == 3) return;
  throw ShapeError(
      std::string(op) + ": expected " + name + " [B, L, D], got " + to_string(x.shape()), loc);
}

// ---- causal convolution -------------------------------------------------------------------------

// Which of K taps are in a step's document, if `behind` [B, L] steps of it are before: tap k reads
// K - 1 - k steps back. Stored, as each channel reads it: bool [B, L, K].
Tensor document_taps(Tensor behind, std::int64_t size, Loc loc) {
  OpContext ctx("causal_conv1d", loc);
  const Shape shape = {behind.size(0), behind.size(1), size};
  const Tensor back = static_cast<double>(size - 1) - iota(shape, 2, i32, loc);
  return ctx.out(
      op::apply(ctx.builder, ops::barrier, {ctx.in(unsqueeze(behind, -1, loc) >= back)}));
}

// sum over k of weight[:, k] x[:, k : k + length], of which x has K - 1 more steps; reversed, of
// the last weight first. `taps` bool [B, length, K], and reversed as long as x, says of each of the
// convolution's steps which taps it has.
Tensor windows_times(Tensor x, Tensor weight, std::int64_t length, bool reversed,
                     const std::optional<Tensor>& taps, Loc loc) {
  const std::int64_t size = weight.size(1);
  // Channels side by side, as they are in x: a small copy.
  const Tensor turned = stack(unbind(weight, 1, loc), 0, loc);
  std::optional<Tensor> sum;
  for (std::int64_t k = 0; k < size; ++k) {
    const std::int64_t tap = reversed ? size - 1 - k : k;
    const Tensor w = squeeze(narrow(turned, 0, tap, 1, loc), 0, loc);
    Tensor steps = narrow(x, 1, k, length, loc);
    if (taps && tap + 1 < size) {
      const Tensor there = narrow(*taps, 2, tap, 1, loc);
      steps = where(reversed ? narrow(there, 1, k, length, loc) : there, steps, 0.0);
    }
    const Tensor part = steps * w;
    sum = sum ? *sum + part : part;
  }
  return *sum;
}

// x [B, K - 1 + L, D] -> [B, L, D]. In the gradient of the weight one launch adds up all its K.
Tensor convolved(Tensor x, Tensor weight, const std::optional<Tensor>& taps, Loc loc) {
  const std::int64_t size = weight.size(1), length = x.size(1) - size + 1;
  return custom_gradient(
      {x, weight},
      [&](const std::vector<Tensor>& in) {
        return windows_times(in[0], in[1], length, false, taps, loc);
      },
      [&](const std::vector<Tensor>& in, Tensor, Tensor dy) -> std::vector<Tensor> {
        const Tensor wide = pad(dy, {0, 0, size - 1, size - 1}, 0, loc);
        std::optional<Tensor> wide_taps;
        if (taps) wide_taps = pad(*taps, {0, 0, size - 1, size - 1}, 0, loc);
        const Tensor dx = windows_times(wide, in[1], in[0].size(1), true, wide_taps, loc);
        // [B, L, D, K] of x, as [B, L, K, D]: channels stay side by side.
        Tensor windows = permute(unfold(in[0], 1, size, 1, 1, loc), {0, 1, 3, 2}, loc);
        if (taps) windows = where(unsqueeze(*taps, -1, loc), windows, 0.0);
        const Tensor dw = sum(windows * unsqueeze(dy, 2, loc), {0, 1}, false, loc);
        return {dx, transpose(dw, 0, 1, loc)};
      },
      loc);
}

}  // namespace

CausalConv causal_conv1d(Tensor x, Tensor weight, std::optional<Tensor> bias,
                         std::optional<Tensor> state, std::optional<Tensor> documents, Loc loc) {
  constexpr const char* kName = "causal_conv1d";
  const Composite composite(kName, loc);
  const Upcast downcast(x);
  demand_steps(kName, "x", x, loc);
  const std::int64_t channels = x.size(2), length = x.size(1);
  if (weight.rank() == 3 && weight.size(1) == 1) weight = squeeze(weight, 1, loc);
  if (weight.rank() != 2 || weight.size(0) != channels || weight.size(1) < 2) {
    throw ShapeError(std::string(kName) + ": expected weight [" + std::to_string(channels) +
                         ", K] with K of at least 2, got " + to_string(weight.shape()),
                     loc);
  }
  if (bias) demand_shape(kName, "bias", *bias, {channels}, loc);
  const std::int64_t before = weight.size(1) - 1;
  const Shape kept = {x.size(0), before, channels};
  if (state) demand_shape(kName, "state", *state, kept, loc);
  const Tensor whole = state ? concat({*state, x}, 1, loc) : pad(x, {0, 0, before, 0}, 0, loc);
  std::optional<Tensor> taps;
  Tensor last = narrow(whole, 1, length, before, loc);
  if (documents) {
    const Tensor behind = DocumentSteps(kName, *documents, x.size(0), length, loc).behind;
    taps = document_taps(behind, before + 1, loc);
    // The first of them is `before` - 1 steps before the last step.
    const Tensor back = static_cast<double>(before - 1) - iota({x.size(0), before}, 1, i32, loc);
    const Tensor own = narrow(behind, 1, length - 1, 1, loc) >= back;
    last = where(unsqueeze(own, -1, loc), last, 0.0);
  }
  const Tensor y = convolved(whole, weight, taps, loc);
  return {downcast(bias ? y + *bias : y), last};
}

// ---- selective scan -----------------------------------------------------------------------------

namespace {

constexpr const char* kScanName = "selective_scan";

// Of a step before which the state is reset.
constexpr double kMinStep = 1e-30;

// At most SelectiveSizes::kMaxStates states. A [N, D]; of the options D, z, the discretization,
// and the initial state, [B, N, D].
SelectiveScan scanned_part(Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C,
                           const SelectiveScanOptions& options, Loc loc) {
  OpContext ctx(kScanName, loc);
  const bool hold = options.discretization == Discretization::kZeroOrderHold;
  Attrs attrs = {{"initial", std::int64_t{options.initial_state.has_value()}},
                 {"zoh", std::int64_t{hold}}};
  if (options.documents) attrs.set("resets", std::int64_t{1});
  if (options.D) {
    attrs.set("skip", std::int64_t{1});
    A = concat({A, reshape(*options.D, {1, A.size(1)}, loc)}, 0, loc);
  }
  std::vector<Expr> operands = {ctx.in(u), ctx.in(delta), ctx.in(A),
                                ctx.in(concat({B, C}, 2, loc))};
  if (options.initial_state) operands.push_back(ctx.in(*options.initial_state));
  if (options.z) {
    attrs.set("gate", std::int64_t{1});
    operands.push_back(ctx.in(*options.z));
  }
  const Expr all = op::apply(ctx.builder, ops::selective_scan, operands, attrs);
  const Shape steps = u.shape(), state = {steps[0], B.size(2), steps[2]};
  const std::int64_t at = numel(steps);
  return {ctx.out(op::reshape(op::slice(all, {0}, {at}), steps)),
          ctx.out(op::reshape(op::slice(all, {at}, {at + numel(state)}), state))};
}

// Any number of states, as the sum of several scans, without D and z.
SelectiveScan scanned_in_parts(Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C,
                               const SelectiveScanOptions& options, Loc loc) {
  const std::int64_t states = B.size(2);
  SelectiveScanOptions part = options;
  std::optional<Tensor> y;
  std::vector<Tensor> ends;
  for (std::int64_t n = 0; n < states; n += SelectiveSizes::kMaxStates) {
    const std::int64_t count = std::min(SelectiveSizes::kMaxStates, states - n);
    const auto some = [&](Tensor x, int axis) { return narrow(x, axis, n, count, loc); };
    if (options.initial_state) part.initial_state = some(*options.initial_state, 1);
    const SelectiveScan scan =
        scanned_part(u, delta, some(A, 0), some(B, 2), some(C, 2), part, loc);
    y = y ? *y + scan.y : scan.y;
    ends.push_back(scan.state);
  }
  return {*y, concat(ends, 1, loc)};
}

// One step needs no scan: a pass over the states, which are written where they are kept. A [D, N],
// initial [B, D, N].
SelectiveScan single_step(Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C,
                          std::optional<Tensor> initial, Loc loc) {
  delta = transpose(delta, 1, 2, loc);  // [B, D, 1]
  Tensor h = delta * transpose(u, 1, 2, loc) * B;
  if (initial) h = exp(delta * A) * *initial + h;
  return {transpose(sum(h * C, {2}, true), 1, 2, loc), h};
}

}  // namespace

SelectiveScan selective_scan(Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C,
                             const SelectiveScanOptions& options, Loc loc) {
  const Composite composite(kScanName, loc);
  const Upcast downcast(u);
  upcast({&delta, &A, &B, &C});
  demand_steps(kScanName, "u", u, loc);
  const Shape steps = u.shape();
  demand_shape(kScanName, "delta", delta, steps, loc);
  if (A.rank() != 2 || A.size(0) != steps[2]) {
    throw ShapeError(std::string(kScanName) + ": expected A [" + std::to_string(steps[2]) +
                         ", N], got " + to_string(A.shape()),
                     loc);
  }
  const std::int64_t states = A.size(1);
  demand_shape(kScanName, "B", B, {steps[0], steps[1], states}, loc);
  demand_shape(kScanName, "C", C, {steps[0], steps[1], states}, loc);
  if (options.initial_state) {
    demand_shape(kScanName, "initial_state", *options.initial_state, {steps[0], steps[2], states},
                 loc);
  }
  if (options.delta_bias) {
    demand_shape(kScanName, "delta_bias", *options.delta_bias, {steps[2]}, loc);
    delta = delta + *options.delta_bias;
  }
  if (options.delta_softplus) delta = softplus(Operand(delta, loc));
  if (options.documents) {
    const DocumentSteps documents(kScanName, *options.documents, steps[0], steps[1], loc);
    if (!options.delta_softplus) delta = maximum(delta, 0.0);
    // The scan resets its states before a step whose delta is negative, and -0 is not.
    delta = where(unsqueeze(documents.starts, -1, loc), -maximum(delta, kMinStep), delta);
  }
  if (options.D) demand_shape(kScanName, "D", *options.D, {steps[2]}, loc);
  std::optional<Tensor> z = options.z;
  if (z) {
    upcast({&*z});
    demand_shape(kScanName, "z", *z, steps, loc);
  }
  // What the kernel does where one has all states.
  const auto finished = [&](Tensor y) {
    if (options.D) y = y + u * *options.D;
    return downcast(z ? y * silu(*z, loc) : y);
  };
  if (steps[1] == 1 && options.discretization == Discretization::kEuler) {
    const SelectiveScan step = single_step(u, delta, A, B, C, options.initial_state, loc);
    return {finished(step.y), step.state};
  }
  SelectiveScanOptions part = {.discretization = options.discretization,
                               .documents = options.documents};
  if (options.initial_state) part.initial_state = transpose(*options.initial_state, 1, 2, loc);
  A = transpose(A, 0, 1, loc);
  if (states <= SelectiveSizes::kMaxStates) {
    part.D = options.D;
    part.z = z;
    const SelectiveScan scan = scanned_part(u, delta, A, B, C, part, loc);
    return {downcast(scan.y), transpose(scan.state, 1, 2, loc)};
  }
  const SelectiveScan scan = scanned_in_parts(u, delta, A, B, C, part, loc);
  return {finished(scan.y), transpose(scan.state, 1, 2, loc)};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
