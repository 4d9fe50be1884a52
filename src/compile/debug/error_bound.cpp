// SPDX-License-Identifier: MIT
#include "compile/debug/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/numbers.h"
#include "ops/pointwise.h"
#include "ops/registry.h"
#include "ops/structured.h"
#include "passes/decompose.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargest = std::numeric_limits<float>::max();
constexpr double kTiny = 0x1p-125;    // devices may flush smaller numbers to zero
constexpr double kNormal = 0x1p-126;  // the smallest normal number
constexpr double kSlopeCap = 100;     // a discontinuity (floor) is not rounding

using Inputs = std::vector<const WithErrorBound*>;

bool exact(const Inputs& inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const WithErrorBound* x) { return x->error.empty(); });
}

// Evaluates the op on other data than the values of the inputs.
RefTensor apply(const OpDef& op, const Node& node, const std::vector<const RefTensor*>& inputs) {
  RefTensor out{node.type, {}};
  op.eval({node, inputs}, out);
  return out;
}

std::vector<const RefTensor*> values_of(const Inputs& inputs) {
  std::vector<const RefTensor*> values;
  for (const WithErrorBound* input : inputs) values.push_back(&input->value);
  return values;
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? kInfinity : d;
}

// Returns an operand of a pointwise node, shifted by `sign` times its error or by a share of
// itself.
RefTensor moved(const WithErrorBound& x, double sign, double share) {
  RefTensor out = x.value;
  for (std::size_t i = 0; i < out.data.size(); ++i) {
    const double by = share > 0 ? share * std::abs(out.data[i]) : x.error_at(i);
    if (by == 0) continue;
    if (x.value.type.dtype == DType::kBool) {
      out.data[i] = out.data[i] == 0 ? 1 : 0;
    } else {
      out.data[i] += sign * by;
      if (x.value.type.dtype == DType::kU32) out.data[i] = std::max(0.0, out.data[i]);
    }
  }
  return out;
}

// Adds the errors of the operands, propagated through the op, and the effect of a small change of
// an operand, which models how the op rounds its argument.
void pointwise_error(const Node& node, const Inputs& inputs, double tolerance,
                     WithErrorBound& out) {
  const bool real = node.type.dtype == DType::kF32;
  std::vector<const RefTensor*> values = values_of(inputs);
  std::vector<double>& error = out.error;
  const std::vector<double>& value = out.value.data;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const auto with = [&](const RefTensor& operand) {
      values[k] = &operand;
      RefTensor result = apply(*node.op, node, values);
      values[k] = &inputs[k]->value;
      return result.data;
    };
    if (!inputs[k]->error.empty()) {
      const std::vector<double> up = with(moved(*inputs[k], 1, 0));
      const std::vector<double> down = with(moved(*inputs[k], -1, 0));
      for (std::size_t i = 0; i < error.size(); ++i) {
        const double a = distance(up[i], value[i]), b = distance(down[i], value[i]);
        // If the error is finite, one of the two sides may be outside the function's domain.
        const bool inside = std::isfinite(inputs[k]->error_at(i));
        const bool both = (std::isfinite(a) && std::isfinite(b)) || !inside;
        error[i] += both ? std::max(a, b) : std::min(a, b);
      }
    }
    if (!real || inputs[k]->value.type.dtype != DType::kF32) continue;
    const std::vector<double> near = with(moved(*inputs[k], 1, tolerance));
    for (std::size_t i = 0; i < error.size(); ++i) {
      const double size = std::max(std::abs(value[i]), std::abs(inputs[k]->value.data[i]));
      const double slope = distance(near[i], value[i]), cap = kSlopeCap * tolerance * size;
      if (std::isfinite(cap)) error[i] += std::min(slope, cap);
    }
  }
}

bool is_comparison(const OpDef& op) {
  return &op == &ops::eq || &op == &ops::ne || &op == &ops::lt || &op == &ops::le ||
         &op == &ops::gt || &op == &ops::ge;
}

// The sides together may cross even if neither error is large enough to do it.
void comparison_error(const WithErrorBound& a, const WithErrorBound& b, WithErrorBound& out) {
  for (std::size_t i = 0; i < out.error.size(); ++i) {
    const double errors = a.error_at(i) + b.error_at(i);
    if (errors > 0 && distance(a.value.data[i], b.value.data[i]) <= errors) out.error[i] = 1;
  }
}

RefTensor as_tensor(const WithErrorBound& x, const std::function<double(double, double)>& f) {
  RefTensor out = x.value;
  for (std::size_t i = 0; i < out.data.size(); ++i) out.data[i] = f(out.data[i], x.error_at(i));
  return out;
}

double error_only(double, double error) { return error; }
double magnitude(double value, double) { return std::abs(value); }

// For argmax and argmin: if several elements may be the extreme, any index is allowed.
void extreme_index_error(const Node& node, const WithErrorBound& x, WithErrorBound& out) {
  const AxisSplit split = split_at(x.value.type.shape, node.attrs.list("axes")[0]);
  const double sign = node.op == &ops::argmax ? 1 : -1;
  for (std::int64_t p = 0; p < split.pre; ++p) {
    for (std::int64_t q = 0; q < split.post; ++q) {
      const auto at = [&](std::int64_t i) {
        return static_cast<std::size_t>((p * split.size + i) * split.post + q);
      };
      double sure = -kInfinity;
      for (std::int64_t i = 0; i < split.size; ++i) {
        sure = std::max(sure, sign * x.value.data[at(i)] - x.error_at(at(i)));
      }
      int close = 0;
      for (std::int64_t i = 0; i < split.size; ++i) {
        close += sign * x.value.data[at(i)] + x.error_at(at(i)) >= sure ? 1 : 0;
      }
      if (close > 1) {
        out.error[static_cast<std::size_t>(p * split.post + q)] = static_cast<double>(split.size);
      }
    }
  }
}

void reduce_error(const Node& node, const WithErrorBound& x, double tolerance,
                  WithErrorBound& out) {
  if (node.op == &ops::argmax || node.op == &ops::argmin) {
    if (!x.error.empty()) extreme_index_error(node, x, out);
    return;
  }
  const bool sum = node.op == &ops::reduce_sum;
  const double share = sum && node.type.dtype == DType::kF32 ? tolerance : 0;
  const RefTensor parts =
      as_tensor(x, [&](double value, double error) { return error + share * std::abs(value); });
  out.error = apply(sum ? ops::reduce_sum : ops::reduce_max, node, {&parts}).data;
}

// For arg_cummax and arg_cummin: if several elements so far may be the extreme, any index is
// allowed.
void running_index_error(const Node& node, const WithErrorBound& x, WithErrorBound& out) {
  const double sign = node.op == &ops::arg_cummax ? 1 : -1;
  const AxisSplit split = split_at(x.value.type.shape, node.attrs.integer("axis"));
  for (std::size_t i = 0; i < out.error.size(); ++i) {
    const auto step = static_cast<std::size_t>(split.post);
    const std::size_t first = i - i / step % static_cast<std::size_t>(split.size) * step;
    const bool reverse = node.attrs.integer("reverse") != 0;
    const std::size_t begin = reverse ? i : first;
    const std::size_t end = reverse ? first + (static_cast<std::size_t>(split.size) - 1) * step : i;
    double sure = -kInfinity;
    int close = 0;
    for (std::size_t j = begin; j <= end; j += step) {
      sure = std::max(sure, sign * x.value.data[j] - x.error_at(j));
    }
    for (std::size_t j = begin; j <= end; j += step) {
      close += sign * x.value.data[j] + x.error_at(j) >= sure ? 1 : 0;
    }
    if (close > 1) out.error[i] = static_cast<double>(split.size);
  }
}

// The error of h = a h' + b follows a recurrence of the same kind:
//   e = |a| e' + (errors from a and b)
void scan_error(const Node& node, const Inputs& inputs, double tolerance, WithErrorBound& out) {
  if (node.op == &ops::arg_cummax || node.op == &ops::arg_cummin) {
    if (!exact(inputs)) running_index_error(node, *inputs[0], out);
    return;
  }
  const bool has_a = node.op != &ops::cumsum, has_b = node.op != &ops::cumprod;
  const double share = node.type.dtype == DType::kF32 ? tolerance : 0;
  const AxisSplit split = split_at(node.type.shape, node.attrs.integer("axis"));
  const bool reverse = node.attrs.integer("reverse") != 0;
  for (std::int64_t line = 0; line < split.pre * split.post; ++line) {
    double h = has_b ? 0 : 1, error = 0;
    for (std::int64_t i = 0; i < split.size; ++i) {
      const std::int64_t t = reverse ? split.size - 1 - i : i;
      const std::size_t at = split.element(line, t);
      if (has_a) {
        const double a = std::abs(inputs[0]->value.data[at]);
        error = a * error + (share * a + inputs[0]->error_at(at)) * std::abs(h);
      }
      if (has_b) {
        const WithErrorBound& b = *inputs.back();
        error += b.error_at(at) + share * std::abs(b.value.data[at]);
      }
      h = out.value.data[at];
      out.error[at] = error;
    }
  }
}

// For argsort: if adjacent elements of the order are too close, any index is allowed.
void order_error(const Node& node, const WithErrorBound& x, WithErrorBound& out) {
  const AxisSplit split = split_at(node.type.shape, node.attrs.integer("axis"));
  for (std::int64_t line = 0; line < split.pre * split.post; ++line) {
    const auto at = [&](std::int64_t t) { return split.element(line, t); };
    for (std::int64_t i = 0; i + 1 < split.size; ++i) {
      const std::size_t one = at(static_cast<std::int64_t>(out.value.data[at(i)]));
      const std::size_t two = at(static_cast<std::int64_t>(out.value.data[at(i + 1)]));
      const double apart = distance(x.value.data[one], x.value.data[two]);
      if (apart > x.error_at(one) + x.error_at(two)) continue;
      out.error[at(i)] = out.error[at(i + 1)] = static_cast<double>(split.size);
    }
  }
}

// Sets the error to |a| (tolerance |b| + error of b) + (error of a) |b|.
void contraction_error(const Node& node, const Inputs& inputs, double tolerance,
                       WithErrorBound& out) {
  const RefTensor a = as_tensor(*inputs[0], magnitude);
  const RefTensor from_b = as_tensor(
      *inputs[1], [&](double value, double error) { return tolerance * std::abs(value) + error; });
  out.error = apply(*node.op, node, {&a, &from_b}).data;
  if (inputs[0]->error.empty()) return;
  const RefTensor from_a = as_tensor(*inputs[0], error_only);
  const RefTensor b = as_tensor(*inputs[1], magnitude);
  const RefTensor more = apply(*node.op, node, {&from_a, &b});
  for (std::size_t i = 0; i < out.error.size(); ++i) out.error[i] += more.data[i];
}

// Propagates errors through ops that move or add up elements. If any index is uncertain, so are all
// results.
void moving_error(const Node& node, const Inputs& inputs, double tolerance, WithErrorBound& out) {
  const bool indexed = node.op->kind == OpKind::kGather || node.op->kind == OpKind::kScatter;
  if (indexed && std::any_of(inputs[1]->error.begin(), inputs[1]->error.end(),
                             [](double error) { return error > 0; })) {
    out.error.assign(out.error.size(), kInfinity);
    return;
  }
  const double share = node.op->kind == OpKind::kScatter ? tolerance : 0;
  std::vector<RefTensor> errors;
  for (const WithErrorBound* input : inputs) {
    errors.push_back(as_tensor(
        *input, [&](double value, double error) { return error + share * std::abs(value); }));
  }
  std::vector<const RefTensor*> pointers;
  pointers.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    pointers.push_back(indexed && i == 1 ? &inputs[1]->value : &errors[i]);
  }
  out.error = apply(*node.op, node, pointers).data;
}

// Returns the error of the op's decomposition. Elements whose value there is not finite are
// unbounded: a kernel may skip a product of a zero weight and infinity, or not.
std::vector<double> macro_error(const Node& node, const Inputs& inputs, double tolerance) {
  Graph written;
  Node composite = node;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    composite.inputs[i] = written.append({&ops::input, {}, inputs[i]->value.type, {}, {}, {}, -1});
  }
  written.outputs = {{"y", written.append(std::move(composite))}};
  written = decompose_all(written);
  std::vector<WithErrorBound> values;
  for (ValueId id = 0; id < written.size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    if (i < inputs.size()) {
      values.push_back(*inputs[i]);
      continue;
    }
    Inputs operands;
    for (const ValueId input : written[id].inputs) {
      operands.push_back(&values[static_cast<std::size_t>(input)]);
    }
    values.push_back(evaluate_with_error_bound(written[id], operands, tolerance));
  }
  WithErrorBound& y = values[static_cast<std::size_t>(written.outputs[0].value)];
  y.error.resize(y.value.data.size());
  for (std::size_t i = 0; i < y.error.size(); ++i) {
    if (!std::isfinite(y.value.data[i])) y.error[i] = kInfinity;
  }
  return std::move(y.error);
}

// Returns the number of successive intermediate results of an element that a device may flush to
// zero.
double flushable_steps(const Node& node, const Inputs& inputs) {
  const Shape& shape = inputs[0]->value.type.shape;
  switch (node.op->kind) {
    case OpKind::kReduce:
      return static_cast<double>(numel(shape)) / static_cast<double>(numel(node.type.shape));
    case OpKind::kContraction: return static_cast<double>(shape.back());
    case OpKind::kScan:
    case OpKind::kScatter:
      return static_cast<double>(shape[static_cast<std::size_t>(node.attrs.integer("axis"))]);
    default: return 1;
  }
}

std::string number(double value) { return format_text("%.9g", value); }

}  // namespace

WithErrorBound error_bound_in_memory(Type type, std::vector<double> data) {
  WithErrorBound stored{{std::move(type), std::move(data)}, {}};
  const auto subnormal = [](double value) { return value != 0 && std::abs(value) < kNormal; };
  const std::vector<double>& values = stored.value.data;
  if (std::none_of(values.begin(), values.end(), subnormal)) return stored;
  for (const double value : values) stored.error.push_back(subnormal(value) ? std::abs(value) : 0);
  return stored;
}

WithErrorBound evaluate_with_error_bound(const Node& node,
                                         const std::vector<const WithErrorBound*>& inputs,
                                         double tolerance) {
  WithErrorBound out{apply(*node.op, node, values_of(inputs)), {}};
  const bool real = node.type.dtype == DType::kF32;
  if (real) {
    for (double& value : out.value.data) value = static_cast<float>(value);
  }
  const OpKind kind = node.op->kind;
  if (node.op->expand != nullptr) {
    out.error = macro_error(node, inputs, tolerance);
    return out;
  }
  const bool rounds = real && (kind == OpKind::kPointwise || kind == OpKind::kReduce ||
                               kind == OpKind::kContraction || kind == OpKind::kScatter ||
                               kind == OpKind::kScan || kind == OpKind::kOpaque);
  if (!rounds && exact(inputs)) return out;
  out.error.assign(out.value.data.size(), 0);
  switch (kind) {
    case OpKind::kPointwise:
      pointwise_error(node, inputs, tolerance, out);
      if (is_comparison(*node.op)) comparison_error(*inputs[0], *inputs[1], out);
      break;
    case OpKind::kReduce: reduce_error(node, *inputs[0], tolerance, out); break;
    case OpKind::kContraction: contraction_error(node, inputs, tolerance, out); break;
    case OpKind::kScan: scan_error(node, inputs, tolerance, out); break;
    case OpKind::kSort: order_error(node, *inputs[0], out); break;
    // It is unknown how a user's function propagates errors.
    case OpKind::kOpaque:
      if (!exact(inputs)) out.error.assign(out.error.size(), kInfinity);
      break;
    default: moving_error(node, inputs, tolerance, out);
  }
  if (rounds) {
    const double tiny = kTiny * flushable_steps(node, inputs);
    for (std::size_t i = 0; i < out.error.size(); ++i) {
      const double size = std::abs(out.value.data[i]);
      if (std::isfinite(size)) out.error[i] += tolerance * (size + out.error[i]) + tiny;
    }
  }
  for (double& error : out.error) {
    if (std::isnan(error)) error = kInfinity;
  }
  return out;
}

std::optional<Difference> first_difference(const WithErrorBound& want,
                                           const std::vector<double>& got) {
  CHECK(got.size() == want.value.data.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double expected = want.value.data[i], allowed = want.error_at(i);
    if (distance(got[i], expected) <= allowed) continue;
    const bool overflow = std::isinf(got[i]) && std::signbit(got[i]) == std::signbit(expected) &&
                          std::abs(expected) + allowed >= kLargest;
    if (overflow) continue;
    return Difference{static_cast<std::int64_t>(i), got[i], expected, allowed};
  }
  return std::nullopt;
}

std::string to_string(const Difference& difference, const Shape& shape) {
  std::vector<std::int64_t> index(shape.size());
  std::int64_t rest = difference.element;
  for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
  return "element " + std::to_string(difference.element) + " " + to_string(index) + " is " +
         number(difference.got) + ", expected " + number(difference.want) + " (rounding explains " +
         number(difference.allowed) + ")";
}

std::vector<WithErrorBound> interpret_with_error_bound(const Graph& graph,
                                                       const ErrorBoundOptions& options) {
  std::vector<int> readers(graph.nodes.size(), 0);
  for (const Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) ++readers[static_cast<std::size_t>(input)];
  }
  std::vector<ValueId> wanted;
  wanted.reserve(graph.outputs.size() + graph.updates.size());
  for (const GraphOutput& output : graph.outputs) wanted.push_back(output.value);
  for (const GraphUpdate& update : graph.updates) wanted.push_back(update.value);
  for (const ValueId id : wanted) ++readers[static_cast<std::size_t>(id)];
  std::vector<WithErrorBound> values(graph.nodes.size());
  for (ValueId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    if (readers[static_cast<std::size_t>(id)] == 0) continue;
    WithErrorBound& out = values[static_cast<std::size_t>(id)];
    if (node.op->eval == nullptr) {
      out = error_bound_in_memory(node.type, options.leaf(node));
      CHECK(static_cast<std::int64_t>(out.value.data.size()) == numel(node.type.shape));
      continue;
    }
    std::vector<const WithErrorBound*> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId input : node.inputs) {
      inputs.push_back(&values[static_cast<std::size_t>(input)]);
    }
    out = evaluate_with_error_bound(node, inputs, options.tolerance);
    for (const ValueId input : node.inputs) {
      const auto i = static_cast<std::size_t>(input);
      if (--readers[i] == 0) values[i] = {};
    }
  }
  std::vector<WithErrorBound> results;
  results.reserve(wanted.size());
  for (const ValueId id : wanted) results.push_back(values[static_cast<std::size_t>(id)]);
  return results;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
