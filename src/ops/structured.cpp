// SPDX-License-Identifier: MIT
// Shared shape arithmetic, and the table of all ops by name.
#include "ops/structured.h"

#include <algorithm>
#include <unordered_map>

#include "ops/pointwise.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

void shape_error(const std::string& text) { throw ShapeError(text); }
void dtype_error(const std::string& text) { throw DtypeError(text); }

DType dtype_attr(const Attrs& attrs) {
  const std::int64_t number = attrs.integer("dtype");
  if (number >= 0 && number <= static_cast<std::int64_t>(DType::kF16)) {
    return static_cast<DType>(number);
  }
  dtype_error("attribute 'dtype': expected 0 (f32) to 4 (f16), got " + std::to_string(number));
}

double wrap(DType dtype, double value) {
  if (dtype == DType::kF32) return value;
  const auto bits = static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
  return dtype == DType::kI32 ? static_cast<double>(static_cast<std::int32_t>(bits)) : bits;
}

std::vector<std::int64_t> pitches(const Shape& shape) { return View::contiguous(shape).strides; }

bool contains(const std::vector<std::int64_t>& axes, std::int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Shape without_axes(const Shape& shape, const std::vector<std::int64_t>& axes) {
  Shape rest;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!contains(axes, static_cast<std::int64_t>(d))) rest.push_back(shape[d]);
  }
  return rest;
}

void check_axis(std::int64_t axis, const Shape& shape) {
  if (axis < 0 || axis >= static_cast<std::int64_t>(shape.size())) {
    shape_error("axis " + std::to_string(axis) + " is out of range for " + to_string(shape));
  }
}

AxisSplit split_at(const Shape& shape, std::int64_t axis) {
  AxisSplit split;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto i = static_cast<std::int64_t>(d);
    (i < axis ? split.pre : i == axis ? split.size : split.post) *= shape[d];
  }
  return split;
}

const std::vector<const OpDef*>& all_ops() {
  static const std::vector<const OpDef*> list = [] {
    std::vector<const OpDef*> ops = {&ops::parameter,
                                     &ops::arena,
                                     &ops::input,
                                     &ops::data,
                                     &ops::state,
                                     &ops::scalar,
                                     &ops::constant,
                                     &ops::literal,
                                     &ops::iota,
                                     &ops::reshape,
                                     &ops::permute,
                                     &ops::broadcast,
                                     &ops::slice,
                                     &ops::pad,
                                     &ops::flip,
                                     &ops::unfold,
                                     &ops::reduce_sum,
                                     &ops::reduce_max,
                                     &ops::reduce_min,
                                     &ops::argmax,
                                     &ops::argmin,
                                     &ops::concat,
                                     &ops::pack,
                                     &ops::reduce_scatter,
                                     &ops::gather,
                                     &ops::scatter_add,
                                     &ops::index_update,
                                     &ops::matmul,
                                     &ops::barrier,
                                     &ops::checkpoint,
                                     &ops::custom_gradient,
                                     &ops::conv2d,
                                     &ops::conv_transpose2d,
                                     &ops::conv2d_weight,
                                     &ops::sum_pool,
                                     &ops::sum_unpool,
                                     &ops::max_pool,
                                     &ops::max_pool_index,
                                     &ops::max_unpool,
                                     &ops::max_pick,
                                     &ops::cumsum,
                                     &ops::cumprod,
                                     &ops::arg_cummax,
                                     &ops::arg_cummin,
                                     &ops::argsort,
                                     &ops::topk_indices,
                                     &ops::sample_tokens,
                                     &ops::attention,
                                     &ops::attention_lse,
                                     &ops::attention_dq,
                                     &ops::attention_dkv,
                                     &ops::attention_backward,
                                     &ops::selective_scan,
                                     &ops::selective_scan_adjoint,
                                     &ops::selective_scan_grad,
                                     &ops::custom,
                                     &ops::linear_recurrence};
    for (const OpDef* def : pointwise_ops()) ops.push_back(def);
    return ops;
  }();
  return list;
}

const OpDef* find_op(std::string_view name) {
  static const std::unordered_map<std::string_view, const OpDef*> by_name = [] {
    std::unordered_map<std::string_view, const OpDef*> map;
    for (const OpDef* def : all_ops()) map.emplace(def->name, def);
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
