// SPDX-License-Identifier: MIT
// The selective scan of Mamba (Gu and Dao 2023, section 3). Its batch x length x states x channels
// states are not stored. The forward pass saves the state before each chunk of steps, and the
// backward pass recomputes the others from it.
//
// For each batch, channel and state, with r = delta A and a = exp(r). w is delta (Euler), or delta
// phi(r) with phi(r) = (e^r - 1) / r (zero-order hold). o is called `ungated`; without a gate z, it
// is y.
//   h[t] = a[t] h[t-1] + w[t] B[t] u[t]        o[t] = sum over states of C[t] h[t] + D u[t]
//   g[t] = C[t] do[t] + e[t+1]                 e[t] = a[t] g[t], the gradient of h[t-1]
//   y[t] = o[t] silu(z[t])      do[t] = dy[t] silu(z[t])      dz[t] = dy[t] o[t] silu'(z[t])
//   dC[t] = do[t] h[t]      du[t] = g[t] w[t] B[t] + D do[t]      dB[t] = g[t] w[t] u[t]
//   dD = sum over t of do[t] u[t]
//   ddelta[t] = A e[t] h[t-1] + g[t] B[t] u[t] (times a[t] for the zero-order hold)
//   dA = sum over t of delta[t] e[t] h[t-1] (+ g[t] B[t] u[t] delta[t]^2 phi'(r))
// With resets, delta stands for |delta| in all formulas, and ddelta is the gradient of |delta|. If
// delta is negative, h[t-1] is 0 and no gradient flows back into it.
#include "ops/selective_scan.h"

#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ops/pointwise.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// attrs: zoh, and initial or ends: 0 or 1 each. states: 0 or absent. skip, gate, resets: 1 or
// absent.
SelectiveShape::SelectiveShape(const OpDef& op, const Shape& delta, const Shape& a,
                               const Attrs& attrs) {
  pass = &op == &ops::selective_scan           ? SelectivePass::kForward
         : &op == &ops::selective_scan_adjoint ? SelectivePass::kAdjoint
                                               : SelectivePass::kBackward;
  const bool with_skip = attrs.has("skip");
  sizes = {.batch = delta[0],
           .length = delta[1],
           .channels = delta[2],
           .states = a[0] - (with_skip ? 1 : 0),
           .skip = with_skip,
           .gate = attrs.has("gate") && pass != SelectivePass::kAdjoint};
  zero_order_hold = attrs.integer("zoh") != 0;
  resets = attrs.has("resets");
  keeps_states = pass == SelectivePass::kForward && !attrs.has("states");
  using enum SelectiveInput;
  for (int& number : numbers) number = -1;
  int next = 0;
  const auto take = [&](SelectiveInput which) {
    numbers[static_cast<std::size_t>(which)] = next++;
  };
  if (pass != SelectivePass::kAdjoint) take(kU);
  for (const SelectiveInput which : {kDelta, kA, kBC}) take(which);
  if (pass == SelectivePass::kBackward) take(kStates);
  if (pass != SelectivePass::kForward) take(kDy);
  if (pass != SelectivePass::kBackward && attrs.integer("initial") != 0) take(kInitial);
  if (pass == SelectivePass::kBackward && attrs.integer("ends") != 0) take(kEnds);
  if (sizes.gate) take(kZ);
  if (sizes.gate && pass == SelectivePass::kBackward) take(kUngated);
}

namespace {

Shape selective_input_shape(const SelectiveSizes& s, SelectiveInput which) {
  switch (which) {
    case SelectiveInput::kU:
    case SelectiveInput::kDelta:
    case SelectiveInput::kDy:
    case SelectiveInput::kZ:
    case SelectiveInput::kUngated: return {s.batch, s.length, s.channels};
    case SelectiveInput::kA: return {s.rates(), s.channels};
    case SelectiveInput::kBC: return {s.batch, s.length, 2 * s.states};
    case SelectiveInput::kInitial: return {s.batch, s.states, s.channels};
    case SelectiveInput::kStates: return {s.batch, s.chunks(), s.states, s.channels};
    case SelectiveInput::kEnds: break;
  }
  return {s.batch, s.segments(), s.states, s.channels};
}

SelectiveShape checked_selective(const OpDef& op, std::span<const Type> in, const Attrs& attrs) {
  const std::size_t first = &op == &ops::selective_scan_adjoint ? 0 : 1;
  if (in.size() < first + 3) shape_error("expected delta, A and bc");
  if (in[first].shape.size() != 3 || in[first + 1].shape.size() != 2) {
    shape_error("expected delta [batch, length, channels] and A [states, channels], got " +
                to_string(in[first].shape) + " and " + to_string(in[first + 1].shape));
  }
  const SelectiveShape s(op, in[first].shape, in[first + 1].shape, attrs);
  if (static_cast<int>(in.size()) != s.operands()) {
    shape_error("expected " + std::to_string(s.operands()) + " operands, got " +
                std::to_string(in.size()));
  }
  if (s.sizes.states > SelectiveSizes::kMaxStates) {
    shape_error("expected at most " + std::to_string(SelectiveSizes::kMaxStates) + " states, got " +
                std::to_string(s.sizes.states));
  }
  constexpr const char* kNames[kSelectiveInputs] = {"u",      "delta", "A",    "bc", "initial",
                                                    "states", "dy",    "ends", "z",  "ungated"};
  for (std::size_t i = 0; i < kSelectiveInputs; ++i) {
    if (s.numbers[i] < 0) continue;
    const Type& given = in[static_cast<std::size_t>(s.numbers[i])];
    const Shape expected = selective_input_shape(s.sizes, static_cast<SelectiveInput>(i));
    if (given.shape != expected) {
      shape_error("expected " + std::string(kNames[i]) + " " + to_string(expected) + ", got " +
                  to_string(given.shape));
    }
    if (given.dtype != DType::kF32) dtype_error("expected f32, got " + to_string(given));
  }
  return s;
}

// All results are parts of one flat tensor.
Type flat_type(const SelectiveShape& s) {
  std::int64_t total = 0;
  for (const std::int64_t size : s.results()) total += size;
  return {DType::kF32, {total}};
}

template <const OpDef& op>
Type infer_flat(std::span<const Type> in, const Attrs& attrs) {
  return flat_type(checked_selective(op, in, attrs));
}

Type infer_adjoint(std::span<const Type> in, const Attrs& attrs) {
  const SelectiveShape s = checked_selective(ops::selective_scan_adjoint, in, attrs);
  return {DType::kF32, selective_input_shape(s.sizes, SelectiveInput::kEnds)};
}

// ---- decompositions -----------------------------------------------------------------------------

// Returns the sum of c[k] z^k.
Expr series(Expr z, const std::vector<double>& c) {
  Expr sum = op::full_like(z, c.back());
  for (std::size_t k = c.size() - 1; k-- > 0;) sum = sum * z + c[k];
  return sum;
}

// Returns `near(z)` if |z| is small, else `far(z)`. Both only see arguments in their own range.
template <class Near, class Far>
Expr by_size(Expr z, const Near& near, const Far& far) {
  const Expr small = op::apply_pointwise(
      ops::lt, {op::apply_pointwise(ops::abs, {z}), SelectiveSizes::kSeriesBelow});
  return op::where(small, near(op::where(small, z, 0)), far(op::where(small, 1, z)));
}

Expr silu(Expr z) { return z * op::apply_pointwise(ops::sigmoid, {z}); }
Expr silu_slope(Expr z) {
  const Expr s = op::apply_pointwise(ops::sigmoid, {z});
  return s + z * s * (1.0 - s);
}

constexpr int kTerms = 14;

Expr phi(Expr z) {
  std::vector<double> c;
  double factorial = 1;
  for (int k = 0; k < kTerms; ++k) c.push_back(1 / (factorial *= k + 1));
  return by_size(
      z, [&](Expr x) { return series(x, c); },
      [](Expr x) { return op::apply_pointwise(ops::expm1, {x}) / x; });
}

Expr phi_slope(Expr z) {
  std::vector<double> c;
  double factorial = 1;
  for (int k = 0; k < kTerms; ++k) c.push_back((k + 1) / (factorial *= k + 2));
  return by_size(
      z, [&](Expr x) { return series(x, c); },
      [](Expr x) { return (x * op::exp(x) - op::apply_pointwise(ops::expm1, {x})) / (x * x); });
}

// Operands of a node, and expressions of them that store all states [batch, length, states,
// channels]. Used for gradients of gradients and for rounding bounds.
struct SelectiveFormula {
  SelectiveFormula(Builder& b, const Node& given)
      : builder(b),
        node(given),
        shape(*given.op, type_of(first()).shape, type_of(first() + 1).shape, given.attrs),
        s(shape.sizes) {}

  [[nodiscard]] std::size_t first() const {
    return node.op == &ops::selective_scan_adjoint ? 0 : 1;
  }
  [[nodiscard]] Type type_of(std::size_t i) const { return builder.graph[node.inputs[i]].type; }
  [[nodiscard]] std::optional<Expr> maybe(SelectiveInput which) const {
    const int number = shape.number(which);
    if (number < 0) return std::nullopt;
    return Expr{&builder, node.inputs[static_cast<std::size_t>(number)]};
  }
  [[nodiscard]] Expr get(SelectiveInput which) const {
    const std::optional<Expr> input = maybe(which);
    CHECK(input);
    return *input;
  }

  [[nodiscard]] Shape whole() const { return {s.batch, s.length, s.states, s.channels}; }
  [[nodiscard]] Expr of_steps(Expr x) const {
    return op::broadcast(op::reshape(x, {s.batch, s.length, 1, s.channels}), whole());
  }
  [[nodiscard]] Expr of_steps(SelectiveInput which) const { return of_steps(get(which)); }
  [[nodiscard]] Expr rates() const {
    const Expr all = get(SelectiveInput::kA);
    return op::broadcast(s.skip ? op::slice(all, {0, 0}, {s.states, s.channels}) : all, whole());
  }
  [[nodiscard]] Expr skip() const {  // D, broadcast to all steps
    const Expr row = op::slice(get(SelectiveInput::kA), {s.states, 0}, {s.states + 1, s.channels});
    return op::broadcast(row, {s.batch, s.length, s.channels});
  }
  // Returns o for the states after each step.
  [[nodiscard]] Expr ungated(Expr h) const {
    const Expr sum = op::reshape(op::sum(h * bc(true), {2}), {s.batch, s.length, s.channels});
    return s.skip ? sum + skip() * get(SelectiveInput::kU) : sum;
  }
  [[nodiscard]] Expr bc(bool of_c) const {  // C, or B
    const std::int64_t from = of_c ? s.states : 0;
    const Expr half =
        op::slice(get(SelectiveInput::kBC), {0, 0, from}, {s.batch, s.length, from + s.states});
    return op::broadcast(op::reshape(half, {s.batch, s.length, s.states, 1}), whole());
  }
  [[nodiscard]] Expr delta() const {
    const Expr given = get(SelectiveInput::kDelta);
    return of_steps(shape.resets ? op::apply_pointwise(ops::abs, {given}) : given);
  }
  [[nodiscard]] Expr exponent() const { return delta() * rates(); }
  // Returns the factor of the state before each step.
  [[nodiscard]] Expr decay() const {
    const Expr a = op::exp(exponent());
    return shape.resets ? op::where(of_steps(starts()), 0, a) : a;
  }
  [[nodiscard]] Expr starts() const {
    return op::apply_pointwise(ops::lt, {get(SelectiveInput::kDelta), 0});
  }
  [[nodiscard]] Expr w() const {
    return shape.zero_order_hold ? delta() * phi(exponent()) : delta();
  }
  [[nodiscard]] Expr one_step(Expr x, std::int64_t t) const {  // [batch, 1, states, channels]
    return op::slice(x, {0, t, 0, 0}, {s.batch, t + 1, s.states, s.channels});
  }
  // Adds `step` to step t of x.
  [[nodiscard]] Expr plus_at(Expr x, Expr step, std::int64_t t) const {
    if (s.length == 1) return x + step;
    return x + op::pad(step, {0, t, 0, 0}, {0, s.length - 1 - t, 0, 0});
  }
  [[nodiscard]] Expr recurrence(Expr a, Expr b, bool reverse) const {
    return op::apply(builder, ops::linear_recurrence, {a, b},
                     {{"axis", std::int64_t{1}}, {"reverse", std::int64_t{reverse}}});
  }
  [[nodiscard]] Expr as_step(Expr state) const {
    return op::reshape(state, {s.batch, 1, s.states, s.channels});
  }

  // Returns the states after each step. `before` is the state before the first one, as a step.
  [[nodiscard]] Expr states_from(std::optional<Expr> before) const {
    const Expr a = decay();
    Expr in = w() * bc(false) * of_steps(SelectiveInput::kU);
    if (before) in = plus_at(in, one_step(a, 0) * *before, 0);
    return recurrence(a, in, false);
  }
  // Returns g of each step. `dungated` is the gradient of o, and `end` the gradient that flows into
  // the last step. If `ends` is set, segments are independent: it has the gradients that flow into
  // the last step of each other segment.
  [[nodiscard]] Expr flowing_back(Expr dungated, std::optional<Expr> end,
                                  std::optional<Expr> ends = {}) const {
    const Expr a = decay();
    Expr in = bc(true) * of_steps(dungated);
    if (end) in = plus_at(in, *end, s.length - 1);
    if (s.length == 1) return in;
    Expr next = op::pad(op::slice(a, {0, 1, 0, 0}, whole()), {0, 0, 0, 0}, {0, 1, 0, 0});
    if (ends) {
      constexpr std::int64_t kEvery = SelectiveSizes::kSegment;  // if there are several segments
      const std::int64_t count = s.segments() - 1;
      const Expr apart = op::pad(op::reshape(*ends, {s.batch, count, 1, s.states, s.channels}),
                                 {0, 0, kEvery - 1, 0, 0}, {0, 0, 0, 0, 0});
      const Expr front = op::reshape(apart, {s.batch, count * kEvery, s.states, s.channels});
      in = in + op::pad(front, {0, 0, 0, 0}, {0, s.length - count * kEvery, 0, 0});
      const Expr step = op::iota(builder, whole(), 1, DType::kI32);
      next = op::where(op::eq(op::bitwise_and(step, kEvery - 1.0), kEvery - 1.0), 0, next);
    }
    return recurrence(next, in, true);
  }
  // Returns element `place` of each of the first `count` runs of `every` steps: [batch, count,
  // states, channels].
  [[nodiscard]] Expr picked(Expr x, std::int64_t every, std::int64_t count,
                            std::int64_t place) const {
    const Expr front = op::slice(x, {0, 0, 0, 0}, {s.batch, count * every, s.states, s.channels});
    const Expr cut = op::reshape(front, {s.batch, count, every, s.states, s.channels});
    const Expr one =
        op::slice(cut, {0, 0, place, 0, 0}, {s.batch, count, place + 1, s.states, s.channels});
    return op::reshape(one, {s.batch, count, s.states, s.channels});
  }

  Builder& builder;
  Node node;
  SelectiveShape shape;
  SelectiveSizes s;
};

Expr flattened(Expr x) { return op::reshape(x, {numel(x.shape())}); }

ValueId expand_selective(ExpandContext& ctx) {
  const SelectiveFormula f(ctx.builder, ctx.node);
  const SelectiveSizes& s = f.s;
  std::optional<Expr> before = f.maybe(SelectiveInput::kInitial);
  if (before) before = f.as_step(*before);
  const Expr h = f.states_from(before);
  const Expr ungated = f.ungated(h);
  std::vector<Expr> all = {flattened(s.gate ? ungated * silu(f.get(SelectiveInput::kZ)) : ungated),
                           flattened(f.one_step(h, s.length - 1))};
  if (!f.shape.keeps_states) return op::concat(all, 0).id;
  if (s.gate) all.push_back(flattened(ungated));
  const Expr first =
      before ? *before
             : op::full(ctx.builder, 0, {DType::kF32, {s.batch, 1, s.states, s.channels}});
  std::vector<Expr> states = {first};
  if (s.chunks() > 1) {
    states.push_back(
        f.picked(h, SelectiveSizes::kChunk, s.chunks() - 1, SelectiveSizes::kChunk - 1));
  }
  all.push_back(flattened(states.size() > 1 ? op::concat(states, 1) : first));
  return op::concat(all, 0).id;
}

ValueId expand_adjoint(ExpandContext& ctx) {
  const SelectiveFormula f(ctx.builder, ctx.node);
  const SelectiveSizes& s = f.s;
  std::optional<Expr> end = f.maybe(SelectiveInput::kInitial);
  if (end) end = f.as_step(*end);
  const Expr last =
      end ? *end : op::full(ctx.builder, 0, {DType::kF32, {s.batch, 1, s.states, s.channels}});
  if (s.segments() == 1) return last.id;
  // e at the first step of each segment but the first.
  const std::int64_t every = s.segment(), count = s.segments() - 1;
  const Expr e = f.decay() * f.flowing_back(f.get(SelectiveInput::kDy), end);
  const Expr behind = op::slice(e, {0, every, 0, 0}, f.whole());
  const std::int64_t missing = count * every - (s.length - every);
  const Expr even = missing == 0 ? behind : op::pad(behind, {0, 0, 0, 0}, {0, missing, 0, 0});
  return op::concat({f.picked(even, every, count, 0), last}, 1).id;
}

ValueId expand_selective_grad(ExpandContext& ctx) {
  const SelectiveFormula f(ctx.builder, ctx.node);
  const SelectiveSizes& s = f.s;
  // All states are recomputed from the first saved one by the same formula.
  const Expr before = f.one_step(f.get(SelectiveInput::kStates), 0);
  std::optional<Expr> end = f.maybe(SelectiveInput::kEnds);
  if (end) end = f.one_step(*end, s.segments() - 1);
  std::optional<Expr> ends;
  if (s.segments() > 1) {
    ends = op::slice(f.get(SelectiveInput::kEnds), {0, 0, 0, 0},
                     {s.batch, s.segments() - 1, s.states, s.channels});
  }
  const Expr dy = f.get(SelectiveInput::kDy);
  const Expr dungated = s.gate ? dy * silu(f.get(SelectiveInput::kZ)) : dy;
  const Expr h = f.states_from(before), g = f.flowing_back(dungated, end, ends);
  const Expr u = f.of_steps(SelectiveInput::kU), delta = f.delta();
  const Expr held =
      s.length == 1
          ? before
          : op::concat(
                {before, op::slice(h, {0, 0, 0, 0}, {s.batch, s.length - 1, s.states, s.channels})},
                1);
  const Expr gw = g * f.w(), gbu = g * f.bc(false) * u, e = f.decay() * g, through = e * held;
  Expr ddelta = f.rates() * through + (f.shape.zero_order_hold ? gbu * op::exp(f.exponent()) : gbu);
  Expr drates = delta * through;
  if (f.shape.zero_order_hold) drates = drates + gbu * delta * delta * phi_slope(f.exponent());
  const auto by_block = [&](Expr x) {  // [batch, blocks, length, states]
    const std::int64_t missing = s.blocks() * s.block() - s.channels;
    if (missing > 0) x = op::pad(x, {0, 0, 0, 0}, {0, 0, 0, missing});
    x = op::reshape(x, {s.batch, s.length, s.states, s.blocks(), s.block()});
    return op::permute(op::sum(x, {4}), {0, 3, 1, 2});
  };
  // Sums over the steps of each segment; x is [batch, length, rows, channels].
  const auto by_segment = [&](Expr x) {
    const std::int64_t rest = s.segments() * s.segment() - s.length;
    if (s.segments() > 1 && rest > 0) x = op::pad(x, {0, 0, 0, 0}, {0, rest, 0, 0});
    const std::int64_t each = s.segments() > 1 ? s.segment() : s.length;
    const Shape cut = {s.batch, s.segments(), each, x.shape()[2], s.channels};
    return op::sum(op::reshape(x, cut), {2});
  };
  drates = by_segment(drates);
  Expr du = op::sum(gw * f.bc(false), {2});
  if (s.skip) {
    du = du + f.skip() * dungated;
    const Expr through_skip =
        op::reshape(dungated * f.get(SelectiveInput::kU), {s.batch, s.length, 1, s.channels});
    drates = op::concat({drates, by_segment(through_skip)}, 2);
  }
  std::vector<Expr> all = {
      flattened(du), flattened(op::sum(ddelta, {2})),
      flattened(op::concat({by_block(gw * u), by_block(f.of_steps(dungated) * h)}, 3)),
      flattened(drates), flattened(f.one_step(e, 0))};
  // o is recomputed, so that no gradient flows back into the saved one.
  if (s.gate) all.push_back(flattened(dy * f.ungated(h) * silu_slope(f.get(SelectiveInput::kZ))));
  return op::concat(all, 0).id;
}

// ---- the gradient -------------------------------------------------------------------------------

// Returns a part of a flat result in its own shape.
Expr part_from(Expr x, std::int64_t start, const Shape& shape) {
  return op::reshape(op::slice(x, {start}, {start + numel(shape)}), shape);
}

// Returns true if elements [begin, end) of a flat value may be nonzero. Gradients of parts arrive
// as sums of padded values.
bool reaches(const Graph& graph, ValueId id, std::int64_t begin, std::int64_t end) {
  std::set<ValueId> seen;
  std::vector<ValueId> open{id};
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    const Node& node = graph[at];
    if (!seen.insert(at).second) continue;
    if (node.op == &ops::add) {
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
      continue;
    }
    if (node.op != &ops::pad) return true;
    const std::int64_t first = node.attrs.list("before")[0];
    const std::int64_t size = graph[node.inputs[0]].type.shape[0];
    if (first < end && begin < first + size) return true;
  }
  return false;
}

// Drops the saved states if nothing reads them, i.e. if no gradient is taken.
std::optional<Attrs> without_states(std::span<const Type> in, const Attrs& attrs,
                                    std::int64_t needed) {
  const SelectiveSizes s = checked_selective(ops::selective_scan, in, attrs).sizes;
  if (attrs.has("states") || needed > s.steps() + s.state()) return std::nullopt;
  Attrs fewer = attrs;
  fewer.set("states", std::int64_t{0});
  return fewer;
}

// Gradients of the results of a scan; nullopt if zero.
struct SelectiveFlow {
  Expr dy;
  std::optional<Expr> last, ungated, states;
};

SelectiveFlow flow_into(const GradContext& ctx, const SelectiveSizes& s) {
  const auto part = [&](std::size_t result, SelectiveInput as) -> std::optional<Expr> {
    const Shape shape = selective_input_shape(s, as);
    const std::int64_t begin = s.start(SelectivePass::kForward, true, result);
    if (!reaches(ctx.graph, ctx.dy_id, begin, begin + numel(shape))) return std::nullopt;
    return part_from(ctx.dy(), begin, shape);
  };
  return {part_from(ctx.dy(), 0, selective_input_shape(s, SelectiveInput::kDy)),
          part(1, SelectiveInput::kInitial),
          s.gate ? part(SelectiveSizes::kUngatedResult, SelectiveInput::kUngated) : std::nullopt,
          part(s.states_result(), SelectiveInput::kStates)};
}

// Returns the gradients that flow into the last step of each segment from later ones, or nullopt if
// zero.
std::optional<Expr> segment_end_gradients(const SelectiveFormula& f, Expr dungated,
                                          std::optional<Expr> last, Attrs how) {
  if (f.s.segments() == 1) {
    if (!last) return std::nullopt;
    return op::reshape(*last, selective_input_shape(f.s, SelectiveInput::kEnds));
  }
  std::vector<Expr> operands = {f.get(SelectiveInput::kDelta), f.get(SelectiveInput::kA),
                                f.get(SelectiveInput::kBC), dungated};
  if (last) operands.push_back(*last);
  how.set("initial", std::int64_t{last.has_value()});
  return op::apply(f.builder, ops::selective_scan_adjoint, operands, how);
}

std::vector<ValueId> grad_selective(GradContext& ctx) {
  const SelectiveFormula f(ctx.builder, Node(ctx.self()));
  const SelectiveSizes& s = f.s;
  const auto shaped = [&](SelectiveInput which) { return selective_input_shape(s, which); };
  const auto result = [&](std::size_t which, SelectiveInput as) {
    return part_from(ctx.y(), s.start(SelectivePass::kForward, true, which), shaped(as));
  };
  const SelectiveFlow flow = flow_into(ctx, s);
  // The kernel applies the gate only if it then binds at most eight buffers.
  const bool gate_in_kernel = s.gate && s.segments() == 1 && !flow.last && !flow.ungated;
  std::vector<Expr> of_gate;
  Expr dungated = flow.dy;
  std::optional<Expr> dz;
  if (s.gate) {
    of_gate = {f.get(SelectiveInput::kZ),
               result(SelectiveSizes::kUngatedResult, SelectiveInput::kUngated)};
  }
  if (s.gate && !gate_in_kernel) {
    dz = flow.dy * of_gate[1] * silu_slope(of_gate[0]);
    dungated = flow.dy * silu(of_gate[0]);
    if (flow.ungated) dungated = dungated + *flow.ungated;
  }
  Attrs how = {{"zoh", std::int64_t{f.shape.zero_order_hold}}};
  if (s.skip) how.set("skip", std::int64_t{1});
  if (f.shape.resets) how.set("resets", std::int64_t{1});
  std::vector<Expr> operands = {f.get(SelectiveInput::kU),
                                f.get(SelectiveInput::kDelta),
                                f.get(SelectiveInput::kA),
                                f.get(SelectiveInput::kBC),
                                result(s.states_result(), SelectiveInput::kStates),
                                dungated};
  const std::optional<Expr> ends = segment_end_gradients(f, dungated, flow.last, how);
  if (ends) operands.push_back(*ends);
  how.set("ends", std::int64_t{ends.has_value()});
  if (gate_in_kernel) {
    how.set("gate", std::int64_t{1});
    operands.insert(operands.end(), of_gate.begin(), of_gate.end());
  }
  const Expr all = op::apply(ctx.builder, ops::selective_scan_grad, operands, how);
  std::int64_t at = 0;
  const auto next = [&](const Shape& shape) {
    return part_from(all, std::exchange(at, at + numel(shape)), shape);
  };
  const Expr du = next(shaped(SelectiveInput::kU));
  Expr ddelta = next(shaped(SelectiveInput::kDelta));
  if (f.shape.resets) ddelta = op::where(f.starts(), -ddelta, ddelta);
  const Expr dbc = op::sum(next({s.batch, s.blocks(), s.length, 2 * s.states}), {1});
  const Expr drates = op::sum(next({s.batch, s.segments(), s.rates(), s.channels}), {0, 1});
  // The first saved state is the initial one.
  Expr initial = next(shaped(SelectiveInput::kInitial));
  if (gate_in_kernel) dz = next(shaped(SelectiveInput::kZ));
  std::vector<ValueId> gradients = {du.id, ddelta.id, drates.id, dbc.id};
  if (f.maybe(SelectiveInput::kInitial)) {
    if (flow.states) initial = initial + op::reshape(f.one_step(*flow.states, 0), initial.shape());
    gradients.push_back(initial.id);
  }
  if (dz) gradients.push_back(dz->id);
  return gradients;
}

template <const OpDef& op>
std::shared_ptr<const OpaqueKernel> selective_kernel(std::span<const Type> in, const Attrs& attrs) {
  const std::size_t first = &op == &ops::selective_scan_adjoint ? 0 : 1;
  const SelectiveShape s(op, in[first].shape, in[first + 1].shape, attrs);
  return std::make_shared<SelectiveKernel>(s, s.numbers);
}

constexpr OpDef selective(OpDef op, ShortenFn shorten) {
  op.shorten = shorten;
  return op;
}

}  // namespace

namespace ops {

constinit const OpDef selective_scan = selective(
    make_opaque_op("selective_scan", -1, selective_kernel<selective_scan>,
                   infer_flat<selective_scan>, grad_selective, eval_selective, expand_selective),
    without_states);
// Their gradients are those of their decompositions.
constinit const OpDef selective_scan_adjoint =
    make_opaque_op("selective_scan_adjoint", -1, selective_kernel<selective_scan_adjoint>,
                   infer_adjoint, nullptr, eval_adjoint, expand_adjoint);
constinit const OpDef selective_scan_grad = make_opaque_op(
    "selective_scan_grad", -1, selective_kernel<selective_scan_grad>,
    infer_flat<selective_scan_grad>, nullptr, eval_selective_grad, expand_selective_grad);

}  // namespace ops
}  // namespace tensorgrad::inline TENSORGRAD_ABI
