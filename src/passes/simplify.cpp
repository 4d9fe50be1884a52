// SPDX-License-Identifier: MIT
// Algebraic rewriting. A rule gets one node, whose inputs are already in the new graph. It returns
// the value that replaces the node, or kNoValue if it does not apply.
#include "passes/simplify.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/expr.h"
#include "ops/pointwise.h"
#include "ops/registry.h"
#include "passes/rewrite_log.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

using Rule = ValueId (*)(Builder& b, const Node& node);

const Node& input(Builder& b, const Node& node, std::size_t i) { return b.graph[node.inputs[i]]; }

// Returns the constant that all elements of a value equal, if there is one. Looks through views
// without padding.
std::optional<double> uniform(const Graph& graph, ValueId id) {
  for (const Node* node = &graph[id];; node = &graph[node->inputs[0]]) {
    if (node->op == &ops::constant) return node->attrs.number("value");
    if (node->op->kind != OpKind::kView || node->op == &ops::pad) return std::nullopt;
  }
}

bool is_uniform(const Graph& graph, ValueId id, double value) {
  const std::optional<double> given = uniform(graph, id);
  return given && *given == value;
}

// Returns the scalar that a value is a broadcast of, or kNoValue.
ValueId scalar_source(const Graph& graph, ValueId id) {
  const Node* node = &graph[id];
  while (node->op->kind == OpKind::kView && node->op != &ops::pad) {
    id = node->inputs[0];
    node = &graph[id];
  }
  return node->type.shape.empty() ? id : kNoValue;
}

// x + 0 = x, 0 + x = x (differs from x only in the sign of a zero)
ValueId add_zero(Builder& b, const Node& node) {
  if (node.op != &ops::add) return kNoValue;
  if (is_uniform(b.graph, node.inputs[1], 0)) return node.inputs[0];
  if (is_uniform(b.graph, node.inputs[0], 0)) return node.inputs[1];
  return kNoValue;
}

// x - 0 = x
ValueId sub_zero(Builder& b, const Node& node) {
  return node.op == &ops::sub && is_uniform(b.graph, node.inputs[1], 0) ? node.inputs[0] : kNoValue;
}

// x * 1 = x, 1 * x = x, x / 1 = x
ValueId mul_one(Builder& b, const Node& node) {
  const bool mul = node.op == &ops::mul;
  if (!mul && node.op != &ops::div) return kNoValue;
  if (is_uniform(b.graph, node.inputs[1], 1)) return node.inputs[0];
  return mul && is_uniform(b.graph, node.inputs[0], 1) ? node.inputs[1] : kNoValue;
}

// x * -1 = -x
ValueId mul_minus_one(Builder& b, const Node& node) {
  if (node.op != &ops::mul || node.type.dtype != DType::kF32) return kNoValue;
  for (const std::size_t i : {0U, 1U}) {
    if (is_uniform(b.graph, node.inputs[i], -1)) return (-Expr{&b, node.inputs[1 - i]}).id;
  }
  return kNoValue;
}

// -(-x) = x
ValueId neg_neg(Builder& b, const Node& node) {
  if (node.op != &ops::neg || input(b, node, 0).op != &ops::neg) return kNoValue;
  return input(b, node, 0).inputs[0];
}

// x / c = x * (1/c) if c is a power of two (exact)
ValueId div_by_power_of_two(Builder& b, const Node& node) {
  if (node.op != &ops::div || node.type.dtype != DType::kF32) return kNoValue;
  const std::optional<double> c = uniform(b.graph, node.inputs[1]);
  if (!c || *c == 0) return kNoValue;
  int exponent = 0;
  const double mantissa = std::frexp(*c, &exponent);
  if (std::abs(mantissa) != 0.5 || std::abs(exponent) > 100) return kNoValue;
  return (Expr{&b, node.inputs[0]} * (1.0 / *c)).id;
}

// cast(x) = x if x has that type
ValueId cast_to_same(Builder& b, const Node& node) {
  const bool same = node.op == &ops::cast && input(b, node, 0).type.dtype == node.type.dtype;
  return same ? node.inputs[0] : kNoValue;
}

// cast(cast(x, f32), f16) = x if x is f16
ValueId cast_and_back(Builder& b, const Node& node) {
  if (node.op != &ops::cast || node.type.dtype != DType::kF16) return kNoValue;
  const Node& wide = input(b, node, 0);
  if (wide.op != &ops::cast || wide.type.dtype != DType::kF32) return kNoValue;
  return b.graph[wide.inputs[0]].type.dtype == DType::kF16 ? wide.inputs[0] : kNoValue;
}

// detach(x) = x (after differentiation)
ValueId drop_detach(Builder&, const Node& node) {
  return node.op == &ops::detach ? node.inputs[0] : kNoValue;
}

// where(true, a, b) = a, where(false, a, b) = b, where(c, a, a) = a
ValueId where_known(Builder& b, const Node& node) {
  if (node.op != &ops::where) return kNoValue;
  if (node.inputs[1] == node.inputs[2]) return node.inputs[1];
  const std::optional<double> condition = uniform(b.graph, node.inputs[0]);
  return condition ? node.inputs[*condition != 0 ? 1 : 2] : kNoValue;
}

// view(x) = x if the view is the identity
ValueId view_of_all(Builder& b, const Node& node) {
  if (node.op->kind != OpKind::kView || node.op->barrier) return kNoValue;
  const Node& in = input(b, node, 0);
  if (in.type != node.type) return kNoValue;
  return node.op->view(in.type, node.attrs).is_identity() ? node.inputs[0] : kNoValue;
}

// reshape(reshape(x)) = reshape(x)
ValueId reshape_reshape(Builder& b, const Node& node) {
  if (node.op != &ops::reshape || input(b, node, 0).op != &ops::reshape) return kNoValue;
  return op::reshape({&b, input(b, node, 0).inputs[0]}, node.type.shape).id;
}

// broadcast(broadcast(x)) = broadcast(x)
ValueId broadcast_broadcast(Builder& b, const Node& node) {
  if (node.op != &ops::broadcast || input(b, node, 0).op != &ops::broadcast) return kNoValue;
  return op::broadcast({&b, input(b, node, 0).inputs[0]}, node.type.shape).id;
}

// permute(permute(x, p), q) = permute(x, p[q])
ValueId permute_permute(Builder& b, const Node& node) {
  if (node.op != &ops::permute || input(b, node, 0).op != &ops::permute) return kNoValue;
  std::vector<std::int64_t> axes;
  for (const std::int64_t axis : node.attrs.list("axes")) {
    axes.push_back(input(b, node, 0).attrs.list("axes")[static_cast<size_t>(axis)]);
  }
  return op::permute({&b, input(b, node, 0).inputs[0]}, axes).id;
}

// (a b)^T = b^T a^T. The weight gradient of a layer that multiplies by W^T then has the layout of
// W.
ValueId transpose_of_product(Builder& b, const Node& node) {
  if (node.op != &ops::permute || input(b, node, 0).op != &ops::matmul) return kNoValue;
  const std::vector<std::int64_t>& axes = node.attrs.list("axes");
  const auto rank = static_cast<std::int64_t>(axes.size());
  for (std::int64_t d = 0; d < rank; ++d) {
    const std::int64_t from = d < rank - 2 ? d : 2 * rank - 3 - d;
    if (axes[static_cast<size_t>(d)] != from) return kNoValue;
  }
  const std::vector<ValueId> operands = input(b, node, 0).inputs;
  return op::matmul(op::transpose({&b, operands[1]}), op::transpose({&b, operands[0]})).id;
}

// f(broadcast(s), broadcast(t)) = broadcast(f(s, t)) for scalars s, t
ValueId pointwise_of_scalars(Builder& b, const Node& node) {
  if (node.op->kind != OpKind::kPointwise || node.type.shape.empty()) return kNoValue;
  std::vector<Expr> scalars;
  for (const ValueId id : node.inputs) {
    const ValueId source = scalar_source(b.graph, id);
    if (source == kNoValue) return kNoValue;
    scalars.push_back({&b, source});
  }
  return op::broadcast(op::apply(b, *node.op, scalars, node.attrs), node.type.shape).id;
}

// sum(broadcast(s)) = s * n for a scalar s
ValueId sum_of_uniform(Builder& b, const Node& node) {
  if (node.op != &ops::reduce_sum || node.type.dtype != DType::kF32) return kNoValue;
  const ValueId source = scalar_source(b.graph, node.inputs[0]);
  if (source == kNoValue) return kNoValue;
  const std::int64_t count = numel(input(b, node, 0).type.shape) / numel(node.type.shape);
  return op::broadcast(Expr{&b, source} * static_cast<double>(count), node.type.shape).id;
}

// reduce(x) = reshape(x) if all reduced axes have size 1
ValueId reduce_size_one(Builder& b, const Node& node) {
  const bool plain =
      node.op == &ops::reduce_sum || node.op == &ops::reduce_max || node.op == &ops::reduce_min;
  if (!plain || numel(input(b, node, 0).type.shape) != numel(node.type.shape)) return kNoValue;
  return op::reshape({&b, node.inputs[0]}, node.type.shape).id;
}

// A rule and its name in the log at TENSORGRAD_DEBUG=5.
struct NamedRule {
  const char* name;
  Rule apply;
};

constexpr NamedRule kRules[] = {
    {"drop_detach", drop_detach},
    {"view_of_all", view_of_all},
    {"reshape_reshape", reshape_reshape},
    {"broadcast_broadcast", broadcast_broadcast},
    {"permute_permute", permute_permute},
    {"transpose_of_product", transpose_of_product},
    {"add_zero", add_zero},
    {"sub_zero", sub_zero},
    {"mul_one", mul_one},
    {"mul_minus_one", mul_minus_one},
    {"neg_neg", neg_neg},
    {"div_by_power_of_two", div_by_power_of_two},
    {"cast_to_same", cast_to_same},
    {"cast_and_back", cast_and_back},
    {"where_known", where_known},
    {"reduce_size_one", reduce_size_one},
    {"pointwise_of_scalars", pointwise_of_scalars},
    {"sum_of_uniform", sum_of_uniform},
};

}  // namespace

Graph simplify(const Graph& graph) { return simplify_without(graph, ""); }

Graph simplify_without(const Graph& graph, std::string_view left_out) {
  const RewriteLog log("simplify");
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    Builder builder{out, node.location, node.origin};
    for (const NamedRule& rule : kRules) {
      if (rule.name == left_out) continue;
      const ValueId value = rule.apply(builder, node);
      if (value == kNoValue) continue;
      log.replaced(rule.name, out, node, value);
      return value;
    }
    return kNoValue;
  });
}

Graph fold(const Graph& graph) {
  const RewriteLog log("fold");
  return rewrite_graph(graph, [&](Graph& out, const Node& node) {
    if (node.op->kind != OpKind::kPointwise || !node.type.shape.empty()) return kNoValue;
    std::vector<RefTensor> values;
    for (const ValueId id : node.inputs) {
      if (out[id].op != &ops::constant) return kNoValue;
      values.push_back({out[id].type, {out[id].attrs.number("value")}});
    }
    std::vector<const RefTensor*> pointers;
    for (const RefTensor& value : values) pointers.push_back(&value);
    RefTensor result{node.type, {}};
    node.op->eval({node, pointers}, result);
    double value = result.data.at(0);
    if (node.type.dtype == DType::kF32) value = static_cast<float>(value);
    Builder builder{out, node.location, node.origin};
    const ValueId folded = op::constant(builder, value, node.type.dtype).id;
    log.replaced("constants", out, node, folded);
    return folded;
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
