// SPDX-License-Identifier: MIT
// Views, reductions, indexing, products, convolutions, pooling, sorting.
#include <limits>
#include <numeric>

#include "onnx/writers.h"
#include "ops/structured.h"
#include "ops/window.h"

namespace tensorgrad::onnx {
namespace {

using Ints = std::vector<std::int64_t>;

std::string reshaped(WriteContext& ctx, const std::string& x, const Shape& shape) {
  return ctx.op("Reshape", {x, ctx.emitter.list(shape)});
}

std::string reshape(WriteContext& ctx) { return reshaped(ctx, ctx.in(0), ctx.node.type.shape); }

std::string permute(WriteContext& ctx) {
  if (ctx.type().shape.empty()) return ctx.op("Identity", {ctx.in(0)});
  return ctx.op("Transpose", {ctx.in(0)}, {{"perm", ctx.node.attrs.list("axes")}});
}

std::string slice(WriteContext& ctx) {
  const Ints &start = ctx.node.attrs.list("start"), &stop = ctx.node.attrs.list("stop");
  Ints starts, stops, axes;
  for (std::size_t d = 0; d < start.size(); ++d) {
    if (start[d] == 0 && stop[d] == ctx.type().shape[d]) continue;
    starts.push_back(start[d]);
    stops.push_back(stop[d]);
    axes.push_back(static_cast<std::int64_t>(d));
  }
  if (axes.empty()) return ctx.op("Identity", {ctx.in(0)});
  Emitter& e = ctx.emitter;
  return ctx.op("Slice", {ctx.in(0), e.list(starts), e.list(stops), e.list(axes)});
}

std::string pad(WriteContext& ctx) {
  if (ctx.type().shape.empty()) return ctx.op("Identity", {ctx.in(0)});
  Ints amounts = ctx.node.attrs.list("before");
  const Ints& after = ctx.node.attrs.list("after");
  amounts.insert(amounts.end(), after.begin(), after.end());
  return ctx.op("Pad", {ctx.in(0), ctx.emitter.list(amounts)});
}

// Slices from the last element to before the first.
std::string flip(WriteContext& ctx) {
  const Ints& axes = ctx.node.attrs.list("axes");
  if (axes.empty()) return ctx.op("Identity", {ctx.in(0)});
  const auto all = [&](std::int64_t value) { return ctx.emitter.list(Ints(axes.size(), value)); };
  return ctx.op("Slice", {ctx.in(0), all(-1), all(std::numeric_limits<std::int64_t>::min()),
                          ctx.emitter.list(axes), all(-1)});
}

// Gathers [.., N, size, ..] and moves the axis of the windows to the end.
std::string unfold(WriteContext& ctx) {
  const Attrs& attrs = ctx.node.attrs;
  const std::int64_t axis = attrs.integer("axis"), size = attrs.integer("size");
  const std::int64_t count = ctx.node.type.shape[static_cast<std::size_t>(axis)];
  Ints places;
  for (std::int64_t n = 0; n < count; ++n) {
    for (std::int64_t j = 0; j < size; ++j)
      places.push_back(n * attrs.integer("step") + j * attrs.integer("dilation"));
  }
  const std::string windows =
      ctx.op("Gather", {ctx.in(0), ctx.emitter.list(places, {count, size})}, {{"axis", axis}});
  Ints order(ctx.node.type.shape.size());
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + axis + 1);
  order.push_back(axis + 1);
  return ctx.op("Transpose", {windows}, {{"perm", order}});
}

std::string reduced(WriteContext& ctx, const char* name, const std::string& x) {
  return ctx.op(name, {x, ctx.emitter.list(ctx.node.attrs.list("axes"))},
                {{"keepdims", std::int64_t{0}}});
}

// Integers are summed in INT64, since runtimes differ on overflow.
std::string reduce_sum(WriteContext& ctx) {
  if (ctx.node.attrs.list("axes").empty()) return ctx.op("Identity", {ctx.in(0)});
  if (ctx.dtype() == DType::kF32) return reduced(ctx, "ReduceSum", ctx.in(0));
  return ctx.wrapped(reduced(ctx, "ReduceSum", ctx.widened(0)), ctx.dtype());
}

// Maps u32 to INT32 of the same order: for INT64, onnxruntime 1.31 compares only 32 bits here.
std::string ordered(WriteContext& ctx) {
  if (ctx.dtype() != DType::kU32) return ctx.in(0);
  return ctx.cast(ctx.op("Sub", {ctx.in(0), ctx.wide(0x1p31)}), OnnxType::kInt32);
}

template <bool kMax>
std::string extreme_of_axes(WriteContext& ctx) {
  if (ctx.node.attrs.list("axes").empty()) return ctx.op("Identity", {ctx.in(0)});
  std::string y = reduced(ctx, kMax ? "ReduceMax" : "ReduceMin", ordered(ctx));
  if (ctx.dtype() != DType::kU32) return y;
  return ctx.op("Add", {ctx.cast(y, OnnxType::kInt64), ctx.wide(0x1p31)});
}

template <bool kMax>
std::string place_of_extreme(WriteContext& ctx) {
  const std::string place =
      ctx.op(kMax ? "ArgMax" : "ArgMin", {ordered(ctx)},
             {{"axis", ctx.node.attrs.list("axes")[0]}, {"keepdims", std::int64_t{0}}});
  return ctx.cast(place, OnnxType::kInt32);
}

std::string concat(WriteContext& ctx) {
  return ctx.op("Concat", ctx.all(), {{"axis", ctx.node.attrs.integer("axis")}});
}

std::string pack(WriteContext& ctx) {
  std::vector<std::string> parts;
  std::int64_t end = 0;
  const auto fill_up_to = [&](std::int64_t next) {
    if (next > end) {
      const std::string zero = ctx.emitter.number(0, OnnxType::kFloat);
      parts.push_back(ctx.op("Expand", {zero, ctx.emitter.list({next - end})}));
    }
    end = next;
  };
  for (std::size_t i = 0; i < ctx.all().size(); ++i) {
    fill_up_to(ctx.node.attrs.list("offsets")[i]);
    parts.push_back(reshaped(ctx, ctx.in(i), {numel(ctx.type(i).shape)}));
    end += numel(ctx.type(i).shape);
  }
  fill_up_to(ctx.node.attrs.integer("size"));
  return ctx.op("Concat", parts, {{"axis", std::int64_t{0}}});
}

// Indices with a mask. The operators reject indices out of range and count negative ones from the
// end.
struct Places {
  std::string inside;  // bool mask of indices in range
  std::string index;   // all in range
};

Places places_in(WriteContext& ctx, const std::string& index, std::int64_t size) {
  const std::string zero = ctx.number(0, 1), last = ctx.number(static_cast<double>(size - 1), 1);
  const std::string low = ctx.op("GreaterOrEqual", {index, zero});
  const std::string high = ctx.op("LessOrEqual", {index, last});
  const std::string inside = ctx.op("And", {low, high});
  return {inside, ctx.op("Where", {inside, index, zero})};
}

// Returns `value` with zeros for indices out of range.
std::string zero_outside(WriteContext& ctx, const std::string& inside, const std::string& value) {
  if (ctx.dtype() == DType::kBool) return ctx.op("And", {inside, value});
  return ctx.op("Where", {inside, value, ctx.number(0)});
}

std::string gather(WriteContext& ctx) {
  const std::int64_t axis = ctx.node.attrs.integer("axis");
  const auto a = static_cast<std::size_t>(axis);
  const Places at = places_in(ctx, ctx.in(1), ctx.type().shape[a]);
  if (!picks_slices(ctx.graph, ctx.node)) {
    const std::string y = ctx.op("GatherElements", {ctx.in(0), at.index}, {{"axis", axis}});
    return zero_outside(ctx, at.inside, y);
  }
  const std::string list = reshaped(ctx, at.index, {ctx.node.type.shape[a]});
  const std::string y = ctx.op("Gather", {ctx.in(0), list}, {{"axis", axis}});
  return zero_outside(ctx, at.inside, y);
}

std::string scatter_add(WriteContext& ctx) {
  const std::int64_t axis = ctx.node.attrs.integer("axis");
  const Places at = places_in(ctx, ctx.in(1), ctx.node.attrs.integer("size"));
  const std::string zeros =
      ctx.op("Expand", {ctx.number(0), ctx.emitter.list(ctx.node.type.shape)});
  const std::string y =
      ctx.op("ScatterElements", {zeros, at.index, zero_outside(ctx, at.inside, ctx.in(0))},
             {{"axis", axis}, {"reduction", std::string("add")}});
  return ctx.dtype() == DType::kU32 ? ctx.wrapped(y, DType::kU32) : y;
}

Ints pair(std::int64_t h, std::int64_t w) { return {h, w}; }

io::OnnxAttributes attributes_of(const Windows& windows) {
  const WindowAxis &h = windows.h, &w = windows.w;
  return {{"kernel_shape", pair(h.size, w.size)},
          {"strides", pair(h.step, w.step)},
          {"pads", Ints{h.padding, w.padding, h.padding, w.padding}}};
}

io::OnnxAttributes with_dilations(io::OnnxAttributes attributes, const Windows& windows) {
  attributes.push_back({"dilations", pair(windows.h.dilation, windows.w.dilation)});
  return attributes;
}

Windows kernel_windows(const WriteContext& ctx) {
  const Shape& weight = ctx.type(1).shape;
  return Windows::of(ctx.node.attrs, {weight[2], weight[3]});
}

std::string conv(WriteContext& ctx) {
  const Windows windows = kernel_windows(ctx);
  io::OnnxAttributes attributes = with_dilations(attributes_of(windows), windows);
  attributes.push_back({"group", ctx.node.attrs.integer("groups")});
  return ctx.op("Conv", ctx.all(), std::move(attributes));
}

std::string conv_transpose(WriteContext& ctx) {
  const Windows windows = kernel_windows(ctx);
  const auto missing = [&](const WindowAxis& window, std::size_t axis) {
    const std::int64_t least =
        (ctx.type().shape[axis] - 1) * window.step + window.reach() + 1 - 2 * window.padding;
    return ctx.node.type.shape[axis] - least;
  };
  io::OnnxAttributes attributes = with_dilations(attributes_of(windows), windows);
  attributes.push_back({"group", ctx.node.attrs.integer("groups")});
  attributes.push_back({"output_padding", pair(missing(windows.h, 2), missing(windows.w, 3))});
  return ctx.op("ConvTranspose", ctx.all(), std::move(attributes));
}

Windows pool_windows(const Node& node) {
  return Windows::of(node.attrs, node.attrs.list("kernel"));
}

std::string max_pool(WriteContext& ctx) {
  const Windows windows = pool_windows(ctx.node);
  return ctx.op("MaxPool", ctx.all(), with_dilations(attributes_of(windows), windows));
}

std::string sum_pool(WriteContext& ctx) {
  const Windows windows = pool_windows(ctx.node);
  io::OnnxAttributes attributes = attributes_of(windows);
  attributes.push_back({"count_include_pad", std::int64_t{1}});
  const std::string mean = ctx.op("AveragePool", ctx.all(), std::move(attributes));
  return ctx.op("Mul", {mean, ctx.number(static_cast<double>(windows.taps()))});
}

std::string cumsum(WriteContext& ctx) {
  const std::string axis = ctx.wide(static_cast<double>(ctx.node.attrs.integer("axis")));
  const io::OnnxAttributes attributes = {{"reverse", ctx.node.attrs.integer("reverse")}};
  if (ctx.dtype() == DType::kF32) return ctx.op("CumSum", {ctx.in(0), axis}, attributes);
  return ctx.wrapped(ctx.op("CumSum", {ctx.widened(0), axis}, attributes), ctx.dtype());
}

// Sorts the whole axis with TopK. By the operator's definition, the sort is stable.
std::string argsort(WriteContext& ctx) {
  const std::int64_t axis = ctx.node.attrs.integer("axis");
  const std::string count = ctx.emitter.list({ctx.type().shape[static_cast<std::size_t>(axis)]});
  const std::string order =
      ctx.emitter.node("TopK", {ctx.in(0), count},
                       {{"axis", axis}, {"largest", ctx.node.attrs.integer("descending")}}, 1, 2);
  return ctx.cast(order, OnnxType::kInt32);
}

std::string custom(WriteContext& ctx) {
  refuse(ctx.node, "an op with a custom kernel cannot be exported");
}

std::string sample_tokens(WriteContext& ctx) {
  refuse(ctx.node, "ONNX has no operator that samples by top_k and top_p");
}

}  // namespace

void add_structured(Writers& writers) {
  const Writers all = {{&ops::reshape, reshape},
                       {&ops::permute, permute},
                       {&ops::slice, slice},
                       {&ops::pad, pad},
                       {&ops::flip, flip},
                       {&ops::unfold, unfold},
                       {&ops::reduce_sum, reduce_sum},
                       {&ops::reduce_max, extreme_of_axes<true>},
                       {&ops::reduce_min, extreme_of_axes<false>},
                       {&ops::argmax, place_of_extreme<true>},
                       {&ops::argmin, place_of_extreme<false>},
                       {&ops::concat, concat},
                       {&ops::pack, pack},
                       {&ops::gather, gather},
                       {&ops::scatter_add, scatter_add},
                       {&ops::matmul, "MatMul"},
                       {&ops::conv2d, conv},
                       {&ops::conv_transpose2d, conv_transpose},
                       {&ops::max_pool, max_pool},
                       {&ops::sum_pool, sum_pool},
                       {&ops::cumsum, cumsum},
                       {&ops::argsort, argsort},
                       {&ops::sample_tokens, sample_tokens},
                       {&ops::custom, custom}};
  writers.insert(all.begin(), all.end());
}

bool picks_slices(const Graph& graph, const Node& gather) {
  if (gather.op != &ops::gather || graph[gather.inputs[1]].op != &ops::broadcast) return false;
  const Shape& wide = gather.type.shape;
  const Shape& from = graph[graph[gather.inputs[1]].inputs[0]].type.shape;
  const auto axis = static_cast<std::size_t>(gather.attrs.integer("axis"));
  return from.size() == wide.size() && from[axis] == wide[axis] && numel(from) == wide[axis];
}

// AveragePool only has dilations from opset 19.
bool is_writable(const Node& node) {
  if (!writers().contains(node.op)) return false;
  if (node.op != &ops::sum_pool) return true;
  const Windows windows = pool_windows(node);
  return windows.h.dilation == 1 && windows.w.dilation == 1;
}

}  // namespace tensorgrad::onnx
