// SPDX-License-Identifier: MIT
// Structured state space duality, as products of matrices within chunks of steps and a recurrence
// over the chunks. Letters: B batch, L steps, c chunks of Q steps, H heads of width P, G groups of
// H / G heads with N states; R ranks, of which each step has as many inputs and outputs.
#include <algorithm>
#include <limits>

#include "functional/documents.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"
#include "trace/composite.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr const char* kSsdName = "ssd";

// The logarithm of the decay of a step is at least this, as e^-128 is 0 in f32.
constexpr double kMinDecay = -128;

struct SsdSizes {
  std::int64_t batch, length, heads, width, groups, states, ranks, chunk, chunks;

  SsdSizes(std::int64_t b, std::int64_t l, std::int64_t h, std::int64_t p, std::int64_t g,
           std::int64_t n, std::int64_t r, std::int64_t q)
      : batch(b),
        length(l),
        heads(h),
        width(p),
        groups(g),
        states(n),
        ranks(r),
        chunk(std::min(q, l)),
        chunks((l + chunk - 1) / chunk) {}
  [[nodiscard]] std::int64_t each() const { return heads / groups; }  // heads of a group
  [[nodiscard]] std::int64_t rows() const { return chunk * ranks; }   // of a chunk
};

// [B, L, ..] with zeros behind the end, as [B, c, Q, ..].
Tensor in_chunks(Tensor x, const SsdSizes& s, Loc loc) {
  Shape shape = x.shape();
  const std::int64_t missing = s.chunks * s.chunk - s.length;
  if (missing > 0) {
    std::vector<std::int64_t> amounts(2 * (shape.size() - 1), 0);
    amounts.back() = missing;
    x = pad(x, amounts, 0, loc);
  }
  shape[1] = s.chunk;
  shape.insert(shape.begin() + 1, s.chunks);
  return reshape(x, shape, loc);
}

// [B, L, H, ..] as [B, c, G, H / G, Q, ..].
Tensor by_head(Tensor x, const SsdSizes& s, Loc loc) {
  const Tensor cut = in_chunks(x, s, loc);
  Shape shape = cut.shape();
  shape[3] = s.each();
  shape.insert(shape.begin() + 3, s.groups);
  std::vector<int> order = {0, 1, 3, 4, 2};
  for (int d = 5; d < static_cast<int>(shape.size()); ++d) order.push_back(d);
  return permute(reshape(cut, shape, loc), order, loc);
}

// The ranks of a step one behind the other: [.., Q, R, ..] -> [.., Q R, ..] from axis 4 on.
Tensor in_rows(Tensor x, const SsdSizes& s, Loc loc) {
  Shape shape = x.shape();
  shape[4] = s.rows();
  shape.erase(shape.begin() + 5);
  return reshape(x, shape, loc);
}

// B and C [B, L, G, R, N] as [B, c, G, 1, Q R, N].
Tensor of_groups(Tensor x, const SsdSizes& s, Loc loc) {
  const Tensor cut = permute(in_chunks(x, s, loc), {0, 1, 3, 2, 4, 5}, loc);
  return reshape(cut, {s.batch, s.chunks, s.groups, 1, s.rows(), s.states}, loc);
}

// The states before each chunk and after the last one: made[c] is what a chunk makes of nothing,
// [B, c, G, H / G, N, P], decay [B, c, G, H / G, 1, 1].
struct ChunkStates {
  Tensor before, last;
};
ChunkStates over_chunks(Tensor made, Tensor decay, std::optional<Tensor> initial, const SsdSizes& s,
                        Loc loc) {
  const Tensor first = initial
                           ? unsqueeze(*initial, 1, loc)
                           : zeros({s.batch, 1, s.groups, s.each(), s.states, s.width}, f32, loc);
  if (s.chunks == 1) {
    return {first, squeeze(initial ? made + decay * first : made, 1, loc)};
  }
  std::optional<Tensor> start;
  if (initial) start = first;
  const Tensor after =
      linear_recurrence(broadcast_to(decay, made.shape(), loc), made, 1, start, false, loc);
  return {concat({first, narrow(after, 1, 0, s.chunks - 1, loc)}, 1, loc),
          squeeze(narrow(after, 1, s.chunks - 1, 1, loc), 1, loc)};
}

// Running sums in two parts, so that the difference of two keeps its digits behind a large step:
// multiples of 1 / `per_one`, which add up exactly as far as 2^24 / per_one, and the rest, at most
// half of one of these in each step, which has the gradient.
struct RunningSums {
  Tensor coarse, fine;

  // Where `keep` is 0, and not 1, sums begin anew.
  static RunningSums of(Tensor x, int axis, double per_one, const std::optional<Tensor>& keep,
                        Loc loc) {
    const Tensor coarse = round(Operand(detach(x) * per_one, loc)) / per_one;
    const auto sums = [&](Tensor v) {
      if (!keep) return cumsum(v, axis, loc);
      return linear_recurrence(broadcast_to(*keep, v.shape(), loc), v, axis, std::nullopt, false,
                               loc);
    };
    return {sums(coarse), sums(x - coarse)};
  }
  // The same done to both parts.
  template <class Change>
  [[nodiscard]] RunningSums with(const Change& change) const {
    return {change(coarse), change(fine)};
  }
  [[nodiscard]] Tensor sum() const { return coarse + fine; }
};
Tensor operator-(const RunningSums& a, const RunningSums& b) {
  return (a.coarse - b.coarse) + (a.fine - b.fine);
}

// What a step's input weighs: to later steps, and to itself; [B, L, H].
struct StepWeights {
  Tensor later, own;
};

// by_chunks() of one step of one rank: a pass over the states, which are written where they are
// kept.
Ssd one_step(Tensor x, Tensor decay, Tensor B, Tensor C, std::optional<Tensor> initial,
             const SsdSizes& s, Loc loc) {
  const Shape of_states = {s.batch, s.groups, 1, 1, s.states};
  Tensor h =
      reshape(x, {s.batch, s.groups, s.each(), s.width, 1}, loc) * reshape(B, of_states, loc);
  if (initial) {
    const Tensor kept = exp(reshape(decay, {s.batch, s.groups, s.each(), 1, 1}, loc));
    h = kept * reshape(*initial, {s.batch, s.groups, s.each(), s.width, s.states}, loc) + h;
  }
  const Tensor y = sum(h * reshape(C, of_states, loc), {4}, false, loc);
  return {reshape(y, {s.batch, 1, s.heads, 1, s.width}, loc),
          reshape(h, {s.batch, s.heads, s.width, s.states}, loc)};
}

// h[t] = e^decay[t] h[t-1] + sum over ranks of x[t] B[t]^T, y[t] = h[t] C[t]; with weights each x
// times its own. x [B, L, H, R, P], decay [B, L, H], B and C [B, L, G, R, N], initial [B, H, P, N];
// starts bool [B, L]: h[t-1] is 0 there. y as x, and the last state.
Ssd by_chunks(Tensor x, Tensor decay, Tensor B, Tensor C, const std::optional<StepWeights>& weights,
              std::optional<Tensor> initial, const std::optional<Tensor>& starts, const SsdSizes& s,
              Loc loc) {
  if (s.length == 1 && s.ranks == 1) {
    // Nothing is later.
    const Tensor own = weights ? x * unsqueeze(unsqueeze(weights->own, -1, loc), -1, loc) : x;
    return one_step(own, decay, B, C, initial, s, loc);
  }
  if (initial) {
    initial = reshape(transpose(*initial, -1, -2, loc),
                      {s.batch, s.groups, s.each(), s.states, s.width}, loc);
  }
  const auto by_row = [&](Tensor v) {  // [B, L, H] -> [.., Q R]
    const Tensor steps = by_head(v, s, loc);
    return s.ranks == 1 ? steps : repeat_interleave(steps, s.ranks, -1, loc);
  };
  // Nothing is left of what is before a document.
  if (starts) decay = where(unsqueeze(*starts, -1, loc), kMinDecay, decay);
  const Tensor input = in_rows(by_head(x, s, loc), s, loc);  // [.., Q R, P]
  // So sums stay where they are exact.
  const Tensor decays = maximum(Operand(by_head(decay, s, loc), loc), kMinDecay);
  const RunningSums steps = RunningSums::of(decays, -1, 64, std::nullopt, loc);  // [.., Q]
  const RunningSums total =
      steps.with([&](Tensor v) { return narrow(v, -1, s.chunk - 1, 1, loc); });  // [.., 1]
  const RunningSums sums = steps.with(
      [&](Tensor v) { return s.ranks == 1 ? v : repeat_interleave(v, s.ranks, -1, loc); });
  const RunningSums row = sums.with([&](Tensor v) { return unsqueeze(v, -1, loc); });
  const RunningSums column = sums.with([&](Tensor v) { return unsqueeze(v, -2, loc); });
  const Tensor in = of_groups(B, s, loc), out = of_groups(C, s, loc);

  // From each step of a chunk to itself and to those behind it.
  const Shape square = {s.rows(), s.rows()};
  const auto ranks = static_cast<std::int32_t>(s.ranks);
  const Tensor from = iota(square, 1, i32, loc) / ranks, to = iota(square, 0, i32, loc) / ranks;
  // To itself it is 1 without a gradient: what a large step makes would else be added to the slopes
  // of others and taken away again.
  const Tensor fixed = where(eq(from, to), 0.0, -std::numeric_limits<double>::infinity());
  Tensor factor = exp(where(from < to, row - column, fixed));
  Tensor left = exp(total - sums);  // to the end of the chunk
  if (weights) {
    const Tensor later = by_row(weights->later);
    factor = factor * where(eq(from, to), unsqueeze(by_row(weights->own), -1, loc),
                            unsqueeze(later, -2, loc));
    left = left * later;
  }
  const Tensor near = matmul(matmul(out, transpose(in, -1, -2, loc), loc) * factor, input, loc);
  const Tensor made = matmul(transpose(in, -1, -2, loc), input * unsqueeze(left, -1, loc), loc);
  const ChunkStates states =
      over_chunks(made, unsqueeze(exp(total.sum()), -1, loc), initial, s, loc);
  const Tensor far = matmul(out, states.before, loc) * exp(row.sum());

  const Shape apart = {s.batch, s.chunks, s.heads, s.chunk, s.ranks, s.width};
  const Tensor sum = permute(reshape(near + far, apart, loc), {0, 1, 3, 2, 4, 5}, loc);
  Tensor y = reshape(sum, {s.batch, s.chunks * s.chunk, s.heads, s.ranks, s.width}, loc);
  if (s.chunks * s.chunk > s.length) y = narrow(y, 1, 0, s.length, loc);
  const Tensor last = reshape(states.last, {s.batch, s.heads, s.states, s.width}, loc);
  return {y, transpose(last, -1, -2, loc)};
}

// Steps of a chunk. One if the graph has to stand for any length: the number of longer chunks is no
// multiple of the length.
std::int64_t chunk_steps(const char* name, std::int64_t chunk, Loc loc) {
  if (chunk < 1) throw UserError(std::string(name) + ": a chunk must have at least one step", loc);
  return Trace::current(name, loc).any_size ? 1 : chunk;
}

}  // namespace

Ssd ssd(Tensor x, Tensor dt, Tensor A, Tensor B, Tensor C, const SsdOptions& options, Loc loc) {
  const Composite composite(kSsdName, loc);
  const Upcast downcast(x);
  upcast({&dt, &A, &B, &C});
  if (x.rank() != 4 || B.rank() != 4 || x.size(2) % B.size(2) != 0) {
    throw ShapeError(std::string(kSsdName) +
                         ": expected x [B, L, H, P] and B [B, L, G, N] with G dividing H, got " +
                         to_string(x.shape()) + " and " + to_string(B.shape()),
                     loc);
  }
  const SsdSizes s(x.size(0), x.size(1), x.size(2), x.size(3), B.size(2), B.size(3), 1,
                   chunk_steps(kSsdName, options.chunk, loc));
  demand_shape(kSsdName, "dt", dt, {s.batch, s.length, s.heads}, loc);
  demand_shape(kSsdName, "A", A, {s.heads}, loc);
  for (const Tensor& each : {B, C}) {
    demand_shape(kSsdName, "B and C", each, {s.batch, s.length, s.groups, s.states}, loc);
  }
  if (options.dt_bias) {
    demand_shape(kSsdName, "dt_bias", *options.dt_bias, {s.heads}, loc);
    dt = dt + *options.dt_bias;
  }
  if (options.dt_softplus) dt = softplus(Operand(dt, loc));
  if (options.initial_state) {
    const Shape state = {s.batch, s.heads, s.width, s.states};
    demand_shape(kSsdName, "initial_state", *options.initial_state, state, loc);
  }
  std::optional<Tensor> starts;
  if (options.documents)
    starts = DocumentSteps(kSsdName, *options.documents, s.batch, s.length, loc).starts;
  const Tensor input = unsqueeze(x * unsqueeze(dt, -1, loc), 3, loc);
  const Ssd made = by_chunks(input, dt * A, unsqueeze(B, 3, loc), unsqueeze(C, 3, loc),
                             std::nullopt, options.initial_state, starts, s, loc);
  Tensor y = squeeze(made.y, 3, loc);
  if (options.D) {
    demand_shape(kSsdName, "D", *options.D, {s.heads}, loc);
    y = y + x * unsqueeze(*options.D, -1, loc);
  }
  return {downcast(y), made.state};
}

// ---- trapezoids and rotations -------------------------------------------------------------------

namespace {

constexpr const char* kRotaryName = "rotary_scan";

constexpr double kTurn = 6.283185307179586;

// Sums of angles over the steps, less whole turns, which are taken away in two parts: the first is
// exact, as the sums are (Cody and Waite).
Tensor running_angles(Tensor each, const std::optional<Tensor>& keep, Loc loc) {
  constexpr double kTurnHigh = 6.28125, kTurnLow = kTurn - kTurnHigh;
  const RunningSums sums = RunningSums::of(each, 1, 512, keep, loc);
  const Tensor turns = round(Operand(sums.coarse * (1 / kTurn), loc));
  return (sums.coarse - turns * kTurnHigh) - turns * kTurnLow + sums.fine;
}

// Elements i and i + N / 2 of x [B, L, H, R, N] turned by -phase [B, L, H, N / 2].
Tensor turned_back(Tensor x, Tensor phase, Loc loc) {
  const std::int64_t pairs = phase.size(-1);
  const Tensor a = narrow(x, -1, 0, pairs, loc), b = narrow(x, -1, pairs, pairs, loc);
  const Tensor c = unsqueeze(cos(phase), 3, loc), s = unsqueeze(sin(phase), 3, loc);
  return concat({a * c + b * s, b * c - a * s}, -1, loc);
}

// x[t + 1], and zeros behind the last step; [B, L, H].
Tensor following(Tensor x, Loc loc) {
  const std::int64_t length = x.size(1);
  if (length == 1) return zeros(x.shape(), f32, loc);
  return pad(narrow(x, 1, 1, length - 1, loc), {0, 0, 0, 1}, 0, loc);
}

Tensor last_step(Tensor x, Loc loc) { return squeeze(narrow(x, 1, x.size(1) - 1, 1, loc), 1, loc); }

}  // namespace

// What step j gives to all later ones is (lambda[j] dt[j] + (1 - lambda[j+1]) dt[j+1]) v[j], and to
// itself the first part of it. What the step before the first one gives is a part of the first
// state.
RotaryScan rotary_scan(Tensor x, Tensor dt, Tensor A, Tensor lambda, Tensor theta, Tensor B,
                       Tensor C, const RotaryScanOptions& options, Loc loc) {
  const Composite composite(kRotaryName, loc);
  const Upcast downcast(x);
  upcast({&dt, &A, &lambda, &theta, &B, &C});
  if (x.rank() != 5 || B.rank() != 5 || B.size(-1) % 2 != 0) {
    throw ShapeError(std::string(kRotaryName) +
                         ": expected x [B, L, H, R, P] and B [B, L, H, R, N] with even N, got " +
                         to_string(x.shape()) + " and " + to_string(B.shape()),
                     loc);
  }
  const SsdSizes s(x.size(0), x.size(1), x.size(2), x.size(4), x.size(2), B.size(4), x.size(3),
                   chunk_steps(kRotaryName, options.chunk, loc));
  const Shape steps = {s.batch, s.length, s.heads};
  demand_shape(kRotaryName, "dt", dt, steps, loc);
  demand_shape(kRotaryName, "A", A, steps, loc);
  demand_shape(kRotaryName, "lambda", lambda, steps, loc);
  demand_shape(kRotaryName, "theta", theta, {s.batch, s.length, s.heads, s.states / 2}, loc);
  for (const Tensor& each : {B, C}) {
    demand_shape(kRotaryName, "B and C", each, {s.batch, s.length, s.heads, s.ranks, s.states},
                 loc);
  }
  const std::optional<RotaryState>& before = options.initial_state;
  if (before) {
    const Shape state = {s.batch, s.heads, s.width, s.states};
    demand_shape(kRotaryName, "state", before->state, state, loc);
    demand_shape(kRotaryName, "state's b", before->b, {s.batch, s.heads, s.ranks, s.states}, loc);
    demand_shape(kRotaryName, "state's x", before->x, {s.batch, s.heads, s.ranks, s.width}, loc);
    demand_shape(kRotaryName, "state's phase", before->phase, {s.batch, s.heads, s.states / 2},
                 loc);
  }
  std::optional<Tensor> starts, keep;
  if (options.documents) {
    const DocumentSteps documents(kRotaryName, *options.documents, s.batch, s.length, loc);
    starts = documents.starts;
    keep = where(reshape(*starts, {s.batch, s.length, 1, 1}, loc), 0.0, 1.0);
  }
  Tensor phase = running_angles(theta * unsqueeze(dt, -1, loc), keep, loc);
  if (before) {
    Tensor phases = unsqueeze(before->phase, 1, loc);
    if (keep) phases = cumprod(*keep, 1, loc) * phases;
    phase = phase + phases;
  }
  B = turned_back(B, phase, loc);
  C = turned_back(C, phase, loc);
  const Tensor late = (1.0 - lambda) * dt;
  std::optional<Tensor> initial;
  if (before) {
    const Tensor rows = transpose(before->x, -1, -2, loc);
    const Tensor v = s.ranks == 1 ? rows * before->b : matmul(rows, before->b, loc);
    const Tensor first = reshape(narrow(late, 1, 0, 1, loc), {s.batch, s.heads, 1, 1}, loc);
    initial = before->state + first * v;
  }
  const Tensor own = lambda * dt;
  const Ssd made = by_chunks(x, dt * A, B, C, StepWeights{own + following(late, loc), own}, initial,
                             starts, s, loc);
  return {
      downcast(made.y),
      {made.state, last_step(B, loc), last_step(x, loc), remainder(last_step(phase, loc), kTurn)}};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
