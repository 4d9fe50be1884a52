// SPDX-License-Identifier: MIT
// Recurrences along an axis, written with the operator Scan. Its body makes one step for a whole
// slice.
#include <limits>
#include <numeric>

#include "onnx/writers.h"
#include "ops/structured.h"

namespace tensorgrad::onnx {
namespace {

using Names = std::vector<std::string>;
using Ints = std::vector<std::int64_t>;

// The body of a Scan under construction. Its values are single slices.
class ScanBody {
 public:
  explicit ScanBody(WriteContext& ctx)
      : ctx_(ctx),
        body_(ctx.emitter),
        slice_(without_axes(ctx.type().shape, {ctx.node.attrs.integer("axis")})) {}

  // Adds an input: first states, then scanned inputs.
  std::string input(OnnxType type) { return input(type, slice_); }
  std::string input(OnnxType type, const Shape& shape) {
    graph_.inputs.push_back({ctx_.emitter.fresh("step"), type, shape});
    return graph_.inputs.back().name;
  }
  // Adds an output: first new states, then results of the step. A value can be used several times.
  void output(const std::string& value, OnnxType type) {
    graph_.outputs.push_back({ctx_.op("Identity", {value}), type, slice_});
  }
  std::shared_ptr<const io::OnnxGraph> take() {
    graph_.name = "step";
    graph_.nodes = body_.take();
    return std::make_shared<const io::OnnxGraph>(std::move(graph_));
  }
  [[nodiscard]] const Shape& slice() const { return slice_; }

 private:
  WriteContext& ctx_;
  Emitter::Body body_;
  Shape slice_;
  io::OnnxGraph graph_;
};

// Returns the last result, stacked along the axis. `along` has the scan axis of each element of
// `read`.
std::string scan(WriteContext& ctx, std::shared_ptr<const io::OnnxGraph> body, const Names& initial,
                 const Names& read, const Ints& along) {
  const std::int64_t reverse = ctx.node.attrs.integer("reverse");
  const std::size_t results = body->outputs.size();
  Names inputs = initial;
  inputs.insert(inputs.end(), read.begin(), read.end());
  io::OnnxAttributes attributes = {{"body", std::move(body)},
                                   {"num_scan_inputs", static_cast<std::int64_t>(read.size())},
                                   {"scan_input_axes", along},
                                   {"scan_input_directions", Ints(read.size(), reverse)},
                                   {"scan_output_axes", Ints{ctx.node.attrs.integer("axis")}},
                                   {"scan_output_directions", Ints{reverse}}};
  return ctx.emitter.node("Scan", inputs, std::move(attributes), results - 1, results);
}

// h = a h + b. Without b: h = a h, starting from 1. Integers are computed in INT64.
template <bool kHasB>
std::string recurrence(WriteContext& ctx) {
  const bool real = ctx.dtype() == DType::kF32;
  const OnnxType type = real ? OnnxType::kFloat : OnnxType::kInt64;
  std::shared_ptr<const io::OnnxGraph> body;
  Shape slice;
  {
    ScanBody step(ctx);
    slice = step.slice();
    const std::string h = step.input(type), a = step.input(type);
    std::string next = ctx.op("Mul", {a, h});
    if (kHasB) next = ctx.op("Add", {next, step.input(type)});
    if (!real) next = ctx.wrapped(next, DType::kU32);
    step.output(next, type);
    step.output(next, type);
    body = step.take();
  }
  const std::string initial =
      ctx.op("Expand", {ctx.emitter.number(kHasB ? 0 : 1, type), ctx.emitter.list(slice)});
  const std::int64_t axis = ctx.node.attrs.integer("axis");
  if (!real)
    return ctx.wrapped(scan(ctx, std::move(body), {initial}, {ctx.widened(0)}, {axis}),
                       ctx.dtype());
  return scan(ctx, std::move(body), {initial}, ctx.all(), Ints(ctx.all().size(), axis));
}

// Running index of the maximum (minimum). In a tie, the last one; a NaN takes precedence.
template <bool kMax>
std::string place_so_far(WriteContext& ctx) {
  const OnnxType type = type_of(ctx.dtype());
  const bool real = ctx.dtype() == DType::kF32;
  std::shared_ptr<const io::OnnxGraph> body;
  Shape slice;
  {
    ScanBody step(ctx);
    slice = step.slice();
    const std::string best = step.input(type), at = step.input(OnnxType::kInt32);
    const std::string x = step.input(type), t = step.input(OnnxType::kInt32, {});
    std::string better = ctx.op(kMax ? "GreaterOrEqual" : "LessOrEqual", {x, best});
    if (real) better = ctx.op("Or", {better, ctx.op("IsNaN", {x})});
    const std::string place = ctx.op("Where", {better, t, at});
    step.output(ctx.op("Where", {better, x, best}), type);
    step.output(place, OnnxType::kInt32);
    step.output(place, OnnxType::kInt32);
    body = step.take();
  }
  // The initial value must not be better than any element.
  const double worst = real                         ? std::numeric_limits<double>::infinity()
                       : ctx.dtype() == DType::kI32 ? (kMax ? 0x1p31 : 0x1p31 - 1)
                                                    : (kMax ? 0 : 0x1p32);
  const std::string shape = ctx.emitter.list(slice);
  const std::string none = ctx.emitter.number(0, OnnxType::kInt32);
  const std::int64_t axis = ctx.node.attrs.integer("axis");
  const std::int64_t length = ctx.type().shape[static_cast<std::size_t>(axis)];
  std::vector<double> places(static_cast<std::size_t>(length));
  std::iota(places.begin(), places.end(), 0);
  return scan(ctx, std::move(body),
              {ctx.op("Expand", {ctx.number(kMax ? -worst : worst), shape}),
               ctx.op("Expand", {none, shape})},
              {ctx.in(0), ctx.emitter.numbers(places, OnnxType::kInt32, {length})}, {axis, 0});
}

}  // namespace

void add_scans(Writers& writers) {
  const Writers all = {{&ops::cumprod, recurrence<false>},
                       {&ops::linear_recurrence, recurrence<true>},
                       {&ops::arg_cummax, place_so_far<true>},
                       {&ops::arg_cummin, place_so_far<false>}};
  writers.insert(all.begin(), all.end());
}

}  // namespace tensorgrad::onnx
