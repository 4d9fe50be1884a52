// SPDX-License-Identifier: MIT
// Attention without materialized weights (Dao et al. 2022, algorithms 1 and 4). The weights of a
// row are
//   p[i,j] = exp(s[i,j] - lse[i])
// with the scores s = scale * q k^T (+ mask) and their logsumexp lse. Backward passes recompute the
// weights from lse. attention returns o and attention_lse returns lse; a single launch computes
// both.
//   o = (keep * p) v            dp = keep * (do v^T)      ds = p * (dp - delta)
//   dq = scale * ds k           dk = scale * ds^T q       dv = (keep * p)^T do
// attention_backward computes all three; attention_dq and attention_dkv compute the weights twice.
// Here delta[i] = sum_e do[i,e] o[i,e]. The gradient of lse contributes ds = p * dlse. Masked
// elements have p = 0. A row in which everything is masked has o = 0 and lse = 0.
#include "ops/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "kernel/scalar_math.h"
#include "ops/pointwise.h"
#include "ops/structured.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// attrs: scale; causal, mask, keep (0 or 1); half (0 or 1, optional); dq_parts (attention_backward)
AttentionShape::AttentionShape(const Shape& q, const Shape& v, const Attrs& attrs, bool backward) {
  causal = attrs.integer("causal") != 0;
  half = attrs.has("half") && attrs.integer("half") != 0;
  scale = attrs.number("scale");
  if (attrs.has("dq_parts")) dq_parts = attrs.integer("dq_parts");
  const std::size_t rank = q.size();
  rows = q[rank - 2];
  depth = q[rank - 1];
  columns = v[rank - 2];
  width = v[rank - 1];
  for (std::size_t d = 0; d + 2 < rank; ++d) batch *= q[d];
  int next = 3;
  if (backward) {
    dy = next++;
    lse = next++;
    delta = next++;
  }
  if (attrs.integer("mask") != 0) mask = next++;
  if (attrs.integer("keep") != 0) keep = next++;
}

namespace {

AttentionShape shape_of(const Node& node, std::span<const RefTensor* const> in, bool backward) {
  return {in[0]->type.shape, in[2]->type.shape, node.attrs, backward};
}

void demand(const Type& given, const Shape& expected, const char* name) {
  if (given.shape == expected) return;
  shape_error("expected " + std::string(name) + " " + to_string(expected) + ", got " +
              to_string(given.shape));
}

// Checks all operands and returns their sizes.
AttentionShape check(std::span<const Type> in, const Attrs& attrs, bool backward) {
  if (in.size() < 3) shape_error("expected q, k and v");
  for (const Type& type : in.first(3)) {
    if (type.shape.size() < 2) shape_error("expected at least two axes, got " + to_string(type));
    // AttentionShape takes the axes of v by the rank of q.
    if (type.shape.size() != in[0].shape.size()) {
      shape_error("expected q, k and v of one rank, got q " + to_string(in[0].shape) + " and " +
                  to_string(type.shape));
    }
  }
  const AttentionShape s(in[0].shape, in[2].shape, attrs, backward);
  const std::size_t expected =
      (backward ? 6U : 3U) + (s.mask >= 0 ? 1U : 0U) + (s.keep >= 0 ? 1U : 0U);
  if (in.size() != expected) {
    shape_error("expected " + std::to_string(expected) + " operands, got " +
                std::to_string(in.size()));
  }
  Shape lead(in[0].shape.begin(), in[0].shape.end() - 2);
  const auto with = [&](std::initializer_list<std::int64_t> sizes) {
    Shape shape = lead;
    shape.insert(shape.end(), sizes);
    return shape;
  };
  demand(in[1], with({s.columns, s.depth}), "k");
  demand(in[2], with({s.columns, s.width}), "v");
  if (backward) {
    demand(in[3], with({s.rows, s.width}), "dy");
    demand(in[4], with({s.rows}), "lse");
    demand(in[5], with({s.rows}), "delta");
  }
  if (s.mask >= 0) demand(in[static_cast<std::size_t>(s.mask)], with({s.rows, s.columns}), "mask");
  if (s.keep >= 0) demand(in[static_cast<std::size_t>(s.keep)], with({s.rows, s.columns}), "keep");
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool truth = static_cast<int>(i) == s.mask && in[i].dtype == DType::kBool;
    if (in[i].dtype != DType::kF32 && !truth) dtype_error("expected f32, got " + to_string(in[i]));
  }
  return s;
}

DType result_dtype(const AttentionShape& s) { return s.half ? DType::kF16 : DType::kF32; }

Shape result_shape(Shape q, std::int64_t width) {
  q.back() = width;
  return q;
}

Shape without_last(Shape shape) {
  shape.pop_back();
  return shape;
}

Type infer_attention(std::span<const Type> in, const Attrs& attrs) {
  const AttentionShape s = check(in, attrs, false);
  return {result_dtype(s), result_shape(in[0].shape, s.width)};
}

Type infer_lse(std::span<const Type> in, const Attrs& attrs) {
  check(in, attrs, false);
  return {DType::kF32, without_last(in[0].shape)};
}

Type infer_dq(std::span<const Type> in, const Attrs& attrs) {
  const AttentionShape s = check(in, attrs, true);
  return {result_dtype(s), in[0].shape};
}

// The result is one flat tensor: dk, followed by dv.
Type infer_dkv(std::span<const Type> in, const Attrs& attrs) {
  const AttentionShape s = check(in, attrs, true);
  return {result_dtype(s), {s.batch * s.columns * (s.depth + s.width)}};
}

// The result is one flat tensor: dk, dv, and the parts of dq.
Type infer_backward(std::span<const Type> in, const Attrs& attrs) {
  const AttentionShape s = check(in, attrs, true);
  if (s.half) dtype_error("dq is added up in parts in f32 only");
  const std::int64_t most = s.chunks();
  if (s.dq_parts < 1 || s.dq_parts > most) {
    shape_error("expected 1 to " + std::to_string(most) + " parts of dq, got " +
                std::to_string(s.dq_parts));
  }
  return {DType::kF32,
          {s.batch * (s.columns * (s.depth + s.width) + s.dq_parts * s.rows * s.depth)}};
}

// ---- evaluation in double ----------------------------------------------------------------------

class Attended {
 public:
  Attended(const EvalContext& ctx, bool backward)
      : s(shape_of(ctx.node, ctx.inputs, backward)), in_(ctx.inputs) {}

  [[nodiscard]] bool allowed(std::int64_t n, std::int64_t i, std::int64_t j) const {
    if (s.causal && j > i) return false;
    if (s.mask < 0 || operand(s.mask).type.dtype != DType::kBool) return true;
    return operand(s.mask).data[at(n, s.rows, i, s.columns, j)] != 0;
  }
  [[nodiscard]] double score(std::int64_t n, std::int64_t i, std::int64_t j) const {
    const double dot = product(0, n * s.rows + i, 1, n * s.columns + j, s.depth);
    const bool added = s.mask >= 0 && operand(s.mask).type.dtype == DType::kF32;
    return dot * s.scale + (added ? operand(s.mask).data[at(n, s.rows, i, s.columns, j)] : 0.0);
  }
  // Returns an element of keep * (dy v^T).
  [[nodiscard]] double from_dy(std::int64_t n, std::int64_t i, std::int64_t j) const {
    return product(s.dy, n * s.rows + i, 2, n * s.columns + j, s.width) * kept(n, i, j);
  }
  [[nodiscard]] double kept(std::int64_t n, std::int64_t i, std::int64_t j) const {
    return s.keep < 0 ? 1.0 : operand(s.keep).data[at(n, s.rows, i, s.columns, j)];
  }
  // Calls visit(n, i, j, p, ds) for each element that is not masked. Needs the backward operands.
  template <class Visit>
  void for_each_weight(const Visit& visit) const {
    for (std::int64_t n = 0; n < s.batch; ++n) {
      for (std::int64_t i = 0; i < s.rows; ++i) {
        const auto row = static_cast<std::size_t>(n * s.rows + i);
        for (std::int64_t j = 0; j < s.columns; ++j) {
          if (!allowed(n, i, j)) continue;
          const double p = std::exp(score(n, i, j) - operand(s.lse).data[row]);
          visit(n, i, j, p, p * (from_dy(n, i, j) - operand(s.delta).data[row]));
        }
      }
    }
  }
  [[nodiscard]] double element(int which, std::int64_t row, std::int64_t width,
                               std::int64_t d) const {
    return operand(which).data[static_cast<std::size_t>(row * width + d)];
  }

  AttentionShape s;

 private:
  static std::size_t at(std::int64_t n, std::int64_t rows, std::int64_t i, std::int64_t columns,
                        std::int64_t j) {
    return static_cast<std::size_t>((n * rows + i) * columns + j);
  }
  [[nodiscard]] const RefTensor& operand(int i) const { return *in_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] double product(int a, std::int64_t row_a, int b, std::int64_t row_b,
                               std::int64_t size) const {
    double sum = 0;
    for (std::int64_t d = 0; d < size; ++d) {
      sum += element(a, row_a, size, d) * element(b, row_b, size, d);
    }
    return sum;
  }

  std::span<const RefTensor* const> in_;
};

void round_if_half(const AttentionShape& s, RefTensor& out) {
  if (!s.half) return;
  for (double& x : out.data) x = scalar_math::round_to_f16({x}).v;
}

// Calls visit(n, row, p, lse) for each row of q with the weights of all columns. If the row is
// fully masked, the weights are empty.
template <class Visit>
void for_each_row(const Attended& a, const Visit& visit) {
  const AttentionShape& s = a.s;
  std::vector<double> p(static_cast<std::size_t>(s.columns));
  for (std::int64_t row = 0; row < s.batch * s.rows; ++row) {
    const std::int64_t n = row / s.rows, i = row % s.rows;
    double top = std::numeric_limits<double>::lowest(), sum = 0;
    for (std::int64_t j = 0; j < s.columns; ++j) {
      double& score = p[static_cast<std::size_t>(j)];
      score = a.allowed(n, i, j) ? a.score(n, i, j) : -std::numeric_limits<double>::infinity();
      if (!(score <= top)) top = score;
    }
    for (double& score : p) sum += score = std::exp(score - top);
    const bool nothing = sum == 0;
    for (double& score : p) score /= sum;
    visit(n, row, std::span(p).first(nothing ? 0 : p.size()), nothing ? 0 : top + std::log(sum));
  }
}

void eval_attention(const EvalContext& ctx, RefTensor& out) {
  const Attended a(ctx, false);
  const AttentionShape& s = a.s;
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  for_each_row(a, [&](std::int64_t n, std::int64_t row, std::span<const double> p, double) {
    for (std::size_t j = 0; j < p.size(); ++j) {
      const auto column = static_cast<std::int64_t>(j);
      const double weight = p[j] * a.kept(n, row % s.rows, column);
      for (std::int64_t e = 0; e < s.width; ++e) {
        out.data[static_cast<std::size_t>(row * s.width + e)] +=
            weight * a.element(2, n * s.columns + column, s.width, e);
      }
    }
  });
  round_if_half(s, out);
}

void eval_lse(const EvalContext& ctx, RefTensor& out) {
  const Attended a(ctx, false);
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  for_each_row(a, [&](std::int64_t, std::int64_t row, std::span<const double>, double lse) {
    out.data[static_cast<std::size_t>(row)] = lse;
  });
}

void eval_dq(const EvalContext& ctx, RefTensor& out) {
  const Attended a(ctx, true);
  const AttentionShape& s = a.s;
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  a.for_each_weight([&](std::int64_t n, std::int64_t i, std::int64_t j, double, double ds) {
    for (std::int64_t d = 0; d < s.depth; ++d) {
      out.data[static_cast<std::size_t>((n * s.rows + i) * s.depth + d)] +=
          s.scale * ds * a.element(1, n * s.columns + j, s.depth, d);
    }
  });
  round_if_half(s, out);
}

void eval_dkv(const EvalContext& ctx, RefTensor& out) {
  const Attended a(ctx, true);
  const AttentionShape& s = a.s;
  out.data.assign(static_cast<std::size_t>(numel(out.type.shape)), 0);
  double* dv = out.data.data() + s.batch * s.columns * s.depth;
  a.for_each_weight([&](std::int64_t n, std::int64_t i, std::int64_t j, double p, double ds) {
    const std::int64_t row = n * s.rows + i, column = n * s.columns + j;
    for (std::int64_t d = 0; d < s.depth; ++d) {
      out.data[static_cast<std::size_t>(column * s.depth + d)] +=
          s.scale * ds * a.element(0, row, s.depth, d);
    }
    for (std::int64_t e = 0; e < s.width; ++e) {
      dv[column * s.width + e] += p * a.kept(n, i, j) * a.element(s.dy, row, s.width, e);
    }
  });
  round_if_half(s, out);
}

void eval_backward(const EvalContext& ctx, RefTensor& out) {
  const Attended a(ctx, true);
  const AttentionShape& s = a.s;
  eval_dkv(ctx, out);
  double* dq = out.data.data() + s.batch * s.columns * (s.depth + s.width);
  a.for_each_weight([&](std::int64_t n, std::int64_t i, std::int64_t j, double, double ds) {
    const std::int64_t row = (n * s.dq_parts + s.part_of(j / kKeysOfPart)) * s.rows + i;
    for (std::int64_t d = 0; d < s.depth; ++d) {
      dq[row * s.depth + d] += s.scale * ds * a.element(1, n * s.columns + j, s.depth, d);
    }
  });
}

// ---- decomposition -----------------------------------------------------------------------------

constexpr double kLowest = std::numeric_limits<float>::lowest();

Expr flat(Expr x) { return op::reshape(x, {numel(x.shape())}); }
Expr as(DType dtype, Expr x) { return x.dtype() == dtype ? x : op::cast(x, dtype); }

// The operands of a node and formulas with materialized T x S weights. Used for second-order
// gradients, the gradient of a mask, and error bounds.
struct Formula {
  Formula(Builder& builder, const Node& node, bool backward)
      : s(builder.graph[node.inputs[0]].type.shape, builder.graph[node.inputs[2]].type.shape,
          node.attrs, backward),
        q(at(builder, node, 0)),
        k(at(builder, node, 1)),
        v(at(builder, node, 2)),
        dy(at(builder, node, s.dy)),
        lse(at(builder, node, s.lse)),
        delta(at(builder, node, s.delta)),
        mask(at(builder, node, s.mask)),
        keep(at(builder, node, s.keep)) {}

  static Expr at(Builder& builder, const Node& node, int i) {
    if (i < 0) return {};
    return {&builder, node.inputs[static_cast<std::size_t>(i)]};
  }
  [[nodiscard]] bool truth_mask() const { return mask.present() && mask.dtype() == DType::kBool; }
  [[nodiscard]] Shape weights_shape() const {
    Shape shape = q.shape();
    shape.back() = s.columns;
    return shape;
  }
  // Broadcasts one number per row along the columns of the weights (or of `like`).
  static Expr along(Expr rows, Expr like) {
    return op::expand_reduced(rows, {static_cast<std::int64_t>(like.shape().size()) - 1},
                              like.shape());
  }
  static Expr row_sum(Expr x) {
    return op::sum(x, {static_cast<std::int64_t>(x.shape().size()) - 1});
  }

  // Returns the mask of allowed elements, bool. Null if all are allowed.
  [[nodiscard]] std::optional<Expr> allowed() const {
    std::optional<Expr> result;
    if (s.causal) {
      Builder& b = *q.builder;
      const int last = static_cast<int>(weights_shape().size()) - 1;
      result = op::apply_pointwise(ops::le, {op::iota(b, weights_shape(), last, DType::kI32),
                                             op::iota(b, weights_shape(), last - 1, DType::kI32)});
    }
    if (!truth_mask()) return result;
    return result ? op::apply_pointwise(ops::logical_and, {*result, mask}) : mask;
  }
  [[nodiscard]] Expr masked(Expr x, double other) const {
    const std::optional<Expr> where = allowed();
    return where ? op::where(*where, x, other) : x;
  }
  [[nodiscard]] Expr scores() const {
    const Expr product = op::matmul(q, op::transpose(k)) * s.scale;
    return mask.present() && !truth_mask() ? product + mask : product;
  }
  [[nodiscard]] Expr kept(Expr x) const { return keep.present() ? x * keep : x; }
  // The scores are masked, not the weights: the gradient of an exponential that overflows would be
  // 0 * inf.
  [[nodiscard]] Expr p() const { return op::exp(masked(scores(), kLowest) - along(lse, scores())); }
  [[nodiscard]] Expr dp() const { return kept(op::matmul(dy, op::transpose(v))); }
  [[nodiscard]] Expr ds() const { return p() * (dp() - along(delta, dp())); }
  // dk, followed by dv.
  [[nodiscard]] std::vector<Expr> dkv() const {
    return {flat(op::matmul(op::transpose(ds()), q) * s.scale),
            flat(op::matmul(op::transpose(kept(p())), dy))};
  }
  // Casts an f32 value to the result type of the node.
  [[nodiscard]] Expr result(Expr x) const { return as(result_dtype(s), x); }

  AttentionShape s;
  Expr q, k, v, dy, lse, delta, mask, keep;
};

// For each row: the maximum score, the exponentials of the scores relative to it, and their sum.
// The sum is 1 if the row is fully masked.
struct Exponentials {
  explicit Exponentials(const Formula& f) {
    Builder& builder = *f.q.builder;
    const auto last = static_cast<std::int64_t>(f.q.shape().size()) - 1;
    const Expr s = f.masked(f.scores(), kLowest);
    top = op::maximum(
        op::apply(builder, ops::reduce_max, {s}, {{"axes", std::vector<std::int64_t>{last}}}),
        kLowest);
    e = f.masked(op::exp(s - Formula::along(top, s)), 0);
    const Expr all = Formula::row_sum(e);
    nothing = op::eq(all, 0);
    sum = op::where(nothing, 1, all);
  }

  Expr top, e, nothing, sum;
};

ValueId expand_attention(ExpandContext& ctx) {
  const Formula f(ctx.builder, ctx.node, false);
  const Exponentials row(f);
  const Expr o = op::matmul(f.kept(row.e), f.v);
  return f.result(o / Formula::along(row.sum, o)).id;
}

ValueId expand_lse(ExpandContext& ctx) {
  const Exponentials row(Formula(ctx.builder, ctx.node, false));
  return op::where(row.nothing, 0, row.top + op::log(row.sum)).id;
}

ValueId expand_dq(ExpandContext& ctx) {
  const Formula f(ctx.builder, ctx.node, true);
  return f.result(op::matmul(f.ds(), f.k) * f.s.scale).id;
}

ValueId expand_dkv(ExpandContext& ctx) {
  const Formula f(ctx.builder, ctx.node, true);
  return f.result(op::concat(f.dkv(), 0)).id;
}

// Returns a range of an axis, counted from the last.
Expr range(Expr x, std::size_t from_last, std::int64_t start, std::int64_t end) {
  Shape first(x.shape().size()), last = x.shape();
  const std::size_t axis = first.size() - from_last;
  first[axis] = start;
  last[axis] = end;
  return op::slice(x, first, last);
}

ValueId expand_backward(ExpandContext& ctx) {
  const Formula f(ctx.builder, ctx.node, true);
  const Expr ds = f.ds();
  std::vector<Expr> parts(static_cast<std::size_t>(f.s.dq_parts));
  for (std::int64_t chunk = 0; chunk < f.s.chunks(); ++chunk) {
    const std::int64_t start = chunk * kKeysOfPart;
    const std::int64_t end = std::min(start + kKeysOfPart, f.s.columns);
    const Expr more = op::matmul(range(ds, 1, start, end), range(f.k, 2, start, end)) * f.s.scale;
    Expr& sum = parts[static_cast<std::size_t>(f.s.part_of(chunk))];
    sum = sum.present() ? sum + more : more;
  }
  for (Expr& part : parts) part = op::reshape(part, {f.s.batch, f.s.rows * f.s.depth});
  std::vector<Expr> all = f.dkv();
  all.push_back(flat(op::concat(parts, 1)));
  return op::concat(all, 0).id;
}

// ---- gradients ---------------------------------------------------------------------------------

// Returns a range of a flat result, reshaped.
Expr reshaped_range(Expr x, std::int64_t start, const Shape& shape) {
  return op::reshape(op::slice(x, {start}, {start + numel(shape)}), shape);
}

// Returns the number of parts of dq, or 0 if it takes a launch of its own, which computes the
// weights again. A workgroup computes a part of a head. The reference GPU is idle for less than a
// tenth of the time, if possible. Each part takes as much memory as q. Short texts are faster in
// two launches, which run within other kernels. f16 weights are for matrix units, which compute dq
// in a launch of its own.
std::int64_t count_dq_parts(const AttentionSizes& s) {
  constexpr std::int64_t kAtOnce = kReferenceGpu.attention_groups_at_once;
  constexpr std::int64_t kMaxParts = 16, kShortText = 16;
  constexpr std::int64_t kMaxPartElements = std::int64_t{1} << 28;
  if (s.half || s.columns <= kShortText) return 0;
  double best = 2.0 / 3;
  std::int64_t parts = 0;
  for (std::int64_t n = 1; n <= std::min(kMaxParts, s.chunks()) && best < 0.9; ++n) {
    const std::int64_t groups = s.batch * n, rounds = (groups + kAtOnce - 1) / kAtOnce;
    const double used = static_cast<double>(groups) / static_cast<double>(rounds * kAtOnce);
    if (used <= best || groups * s.rows * s.depth > kMaxPartElements) continue;
    best = used;
    parts = n;
  }
  return parts;
}

std::vector<ValueId> grad_attention(GradContext& ctx) {
  const Node self = ctx.self();
  Formula f(ctx.builder, self, false);
  std::vector<Expr> operands;
  for (const ValueId id : self.inputs) operands.push_back({&ctx.builder, id});
  f.lse = op::apply(ctx.builder, ops::attention_lse, operands, Attrs(self.attrs));
  f.dy = as(DType::kF32, ctx.dy());
  f.delta = Formula::row_sum(f.dy * ctx.y());
  operands.insert(operands.begin() + 3, {f.dy, f.lse, f.delta});
  const std::int64_t parts = count_dq_parts(f.s);
  const auto backward = [&](const OpDef& op, Attrs attrs) {
    return op::apply(ctx.builder, op, operands, std::move(attrs));
  };
  Expr dq, all;
  if (parts == 0) {
    dq = backward(ops::attention_dq, Attrs(self.attrs));
    all = backward(ops::attention_dkv, Attrs(self.attrs));
  } else {
    Attrs attrs = self.attrs;
    attrs.set("dq_parts", parts);
    all = backward(ops::attention_backward, std::move(attrs));
    const std::int64_t start = numel(f.k.shape()) + numel(f.v.shape());
    const Expr sums = reshaped_range(all, start, {f.s.batch, parts, f.s.rows * f.s.depth});
    dq = op::reshape(parts == 1 ? sums : op::sum(sums, {1}), f.q.shape());
  }
  const Expr dk = reshaped_range(all, 0, f.k.shape()),
             dv = reshaped_range(all, numel(dk.shape()), f.v.shape());
  std::vector<ValueId> gradients;
  for (const Expr& each : {dq, dk, dv}) gradients.push_back(as(DType::kF32, each).id);
  if (f.mask.present()) gradients.push_back(f.truth_mask() ? kNoValue : f.ds().id);
  if (f.keep.present()) gradients.push_back(kNoValue);  // random; has no gradient
  return gradients;
}

std::vector<ValueId> grad_lse(GradContext& ctx) {
  const Node self = ctx.self();
  Formula f(ctx.builder, self, false);
  f.lse = ctx.y();
  const Expr p = f.p(), ds = p * Formula::along(ctx.dy(), p);
  std::vector<ValueId> gradients = {(op::matmul(ds, f.k) * f.s.scale).id,
                                    (op::matmul(op::transpose(ds), f.q) * f.s.scale).id, kNoValue};
  if (f.mask.present()) gradients.push_back(f.truth_mask() ? kNoValue : ds.id);
  if (f.keep.present()) gradients.push_back(kNoValue);
  return gradients;
}

template <AttentionPass pass>
std::shared_ptr<const OpaqueKernel> attention_kernel(std::span<const Type> in, const Attrs& attrs) {
  const AttentionShape s(in[0].shape, in[2].shape, attrs, pass != AttentionPass::kForward);
  return std::make_shared<AttentionKernel>(
      pass, s, std::array{0, 1, 2, s.dy, s.lse, s.delta, s.mask, s.keep});
}

constexpr OpDef of_forward(const char* name, int result, InferFn infer, GradFn grad, EvalFn eval,
                           ExpandFn expand) {
  OpDef op = make_opaque_op(name, -1, attention_kernel<AttentionPass::kForward>, infer, grad, eval,
                            expand);
  op.only_result = result;
  return op;
}

}  // namespace

namespace ops {

constinit const OpDef attention =
    of_forward("attention", 0, infer_attention, grad_attention, eval_attention, expand_attention);
constinit const OpDef attention_lse =
    of_forward("attention_lse", 1, infer_lse, grad_lse, eval_lse, expand_lse);
constinit const OpDef attention_dq =
    make_opaque_op("attention_dq", -1, attention_kernel<AttentionPass::kQueries>, infer_dq, nullptr,
                   eval_dq, expand_dq);
constinit const OpDef attention_dkv =
    make_opaque_op("attention_dkv", -1, attention_kernel<AttentionPass::kKeys>, infer_dkv, nullptr,
                   eval_dkv, expand_dkv);
constinit const OpDef attention_backward =
    make_opaque_op("attention_backward", -1, attention_kernel<AttentionPass::kBackward>,
                   infer_backward, nullptr, eval_backward, expand_backward);

}  // namespace ops

bool is_attention(const OpDef& op) {
  return &op == &ops::attention || &op == &ops::attention_lse || &op == &ops::attention_dq ||
         &op == &ops::attention_dkv || &op == &ops::attention_backward;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
