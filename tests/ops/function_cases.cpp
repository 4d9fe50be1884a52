// SPDX-License-Identifier: MIT
// Functions composed of other ops: activations, losses, norms, attention, and those of arranging.h.
// tests/golden compares them with PyTorch.
#include <cmath>

#include "op_cases.h"

namespace tensorgrad::testing {
namespace {

using T = const std::vector<Tensor>&;

Argument index_of(const Shape& shape, const Values& values, DType dtype = i32) {
  return {shape, 0, 0, dtype, values};
}

const Argument kExtremes = {{9}, 0, 0, f32, {0, -0.0, 1e4, -1e4, 100, -100, kInf, -kInf, kNan}};

using Unary = Tensor (*)(Tensor, Loc);
OpCase unary(const std::string& name, Unary op, bool edges = false) {
  const auto apply = [op](T t) { return op(t[0], Loc::current()); };
  if (edges) return {name + "_edges", {kExtremes}, apply, false, true};
  return {name, {{{3, 5}, -4, 4}}, apply};
}

void append(std::vector<OpCase>& all, const std::vector<OpCase>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

std::vector<OpCase> pointwise_composites() {
  return {
      {"clamp_by_tensors",
       {{{3, 5}}, {{5}, -1.5, 0}, {{3, 1}, 0.2, 1}},
       [](T t) { return clamp(t[0], t[1], t[2]); }},
      {"clamp_by_one_tensor", {{{3, 5}}, {{5}}}, [](T t) { return clamp(t[0], -1.0, t[1]); }},
      {"isinf", {kExtremes}, [](T t) { return isinf(t[0]); }, false, true},
      {"isinf_of_numbers", {{{3, 5}}}, [](T t) { return isinf(t[0]); }, false},
      {"nan_to_num_of_numbers", {{{3, 5}}}, [](T t) { return nan_to_num(t[0], 7, 8, -9); }},
      {"nan_to_num", {kExtremes}, [](T t) { return nan_to_num(t[0], 7, 8, -9); }, false, true},
      {"lerp", {{{3, 5}}, {{5}}, {{3, 1}, 0, 1}}, [](T t) { return lerp(t[0], t[1], t[2]); }},
      {"floor_divide",
       {{{4, 5}, -9, 9}, {{4, 5}, 0.3, 3}},
       [](T t) { return floor_divide(t[0], t[1]) + floor_divide(t[0], -t[1]); },
       false},
      {"floor_divide_between_steps",
       {{{4, 5}, 4.2, 5.8}, {{4, 5}, 2, 2.05}},
       [](T t) { return floor_divide(t[0], t[1]) * t[0]; }},
      {"floor_divide_i32",
       {{{4, 5}, -9, 9, i32}, {{4, 5}, -3, 3, i32}},
       [](T t) { return floor_divide(t[0], t[1]); },
       false},
      {"floor_divide_u32",
       {{{4, 5}, 0, 4e9, u32}, {{4, 5}, 0, 9, u32}},
       [](T t) { return floor_divide(t[0], t[1]); },
       false},
      {"fmod_of_three_times",
       {{{5}, 6.3, 7.8}, {{5}, 2, 2.05}},
       [](T t) { return fmod(t[0], t[1]); }},
      {"remainder",
       {{{4, 5}, 4.2, 5.8}, {{4, 5}, 2, 2.05}},
       [](T t) { return remainder(t[0], t[1]); }},
      {"remainder_of_negative",
       {{{4, 5}, -5.8, -4.2}, {{4, 5}, 2, 2.05}},
       [](T t) { return remainder(t[0], t[1]); }},
      {"remainder_i32",
       {{{4, 5}, -9, 9, i32}, {{4, 5}, -3, 3, i32}},
       [](T t) { return remainder(t[0], t[1]); },
       false},
      {"hypot", {{{3, 5}}, {{5}}}, [](T t) { return hypot(t[0], t[1]); }},
      {"hypot_edges",
       {{{6}, 0, 0, f32, {3e38, 1e-30, 0, kInf, kNan, -3}},
        {{6}, 0, 0, f32, {1e38, 1e-30, 0, 1, 1, 4}}},
       [](T t) { return hypot(t[0], t[1]) * 0.5; },
       false,
       true},
      {"log10", {{{3, 5}, 0.1, 900}}, [](T t) { return log10(t[0]); }},
      {"asin", {{{3, 5}, -0.95, 0.95}}, [](T t) { return asin(t[0]); }},
      {"acos", {{{3, 5}, -0.95, 0.95}}, [](T t) { return acos(t[0]); }},
      {"arcs_edges",
       {{{6}, 0, 0, f32, {1, -1, 0, 1.5, kInf, kNan}}},
       [](T t) { return asin(t[0]) + 2.0 * acos(t[0]); },
       false,
       true},
      {"atan", {{{3, 5}, -9, 9}}, [](T t) { return atan(t[0]); }},
      {"cosh", {{{3, 5}}}, [](T t) { return cosh(t[0]); }},
      {"cosh_edges", {kExtremes}, [](T t) { return cosh(t[0] * 0.9); }, false, true},
  };
}

std::vector<OpCase> activations() {
  std::vector<OpCase> cases = {
      {"leaky_relu", {{{3, 5}}}, [](T t) { return leaky_relu(t[0], 0.1); }},
      {"prelu", {{{3, 5, 2}}, {{5}, 0, 1}}, [](T t) { return prelu(t[0], t[1]); }},
      {"prelu_of_one", {{{3, 5}}, {{1}, 0, 1}}, [](T t) { return prelu(t[0], t[1]); }},
      {"elu", {{{3, 5}}}, [](T t) { return elu(t[0], 0.7); }},
      {"elu_edges", {kExtremes}, [](T t) { return elu(t[0]); }, false, true},
      {"celu", {{{3, 5}}}, [](T t) { return celu(t[0], 0.7); }},
      {"hardtanh", {{{3, 5}}}, [](T t) { return hardtanh(t[0], -0.5, 1.2); }},
      {"threshold", {{{3, 5}}}, [](T t) { return threshold(t[0], 0.3, -2); }},
      {"glu", {{{3, 6}}}, [](T t) { return glu(t[0]); }},
      {"glu_axis_0", {{{4, 3}}}, [](T t) { return glu(t[0], 0); }},
      {"masked_softmax",
       {{{3, 5}}, {{3, 5}, 0, 1, boolean, {1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}}},
       [](T t) { return masked_softmax(t[0], t[1]); }},
      {"masked_softmax_axis_0",
       {{{3, 2}}, {{3, 1}, 0, 1, boolean, {1, 0, 1}}},
       [](T t) { return masked_softmax(t[0], t[1], 0); }},
      {"softmax_of_minus_infinity",
       {{{2, 3}, 0, 0, f32, {1, -kInf, 2, -kInf, -kInf, -kInf}}},
       [](T t) { return softmax(t[0]); },
       false,
       true},
      {"log_softmax_of_minus_infinity",
       {{{2, 3}, 0, 0, f32, {1, -kInf, 2, -kInf, -kInf, -kInf}}},
       [](T t) { return log_softmax(t[0]); },
       false,
       true},
  };
  for (const bool edges : {false, true}) {
    append(cases, {unary("selu", selu, edges), unary("relu6", relu6, edges),
                   unary("hardsigmoid", hardsigmoid, edges), unary("hardswish", hardswish, edges),
                   unary("mish", mish, edges), unary("logsigmoid", logsigmoid, edges),
                   unary("softsign", softsign, edges), unary("tanhshrink", tanhshrink, edges)});
  }
  return cases;
}

std::vector<OpCase> norms() {
  return {
      {"layer_norm_two_axes",
       {{{2, 3, 4}}, {{3, 4}}, {{3, 4}}},
       [](T t) { return layer_norm(t[0], {3, 4}, t[1], t[2]); }},
      {"rms_norm", {{{3, 5}}, {{5}}}, [](T t) { return rms_norm(t[0], t[1]); }},
      {"rms_norm_plain", {{{3, 5}}}, [](T t) { return rms_norm(t[0]); }},
      {"rms_norm_two_axes", {{{2, 3, 4}}, {{3, 4}}}, [](T t) { return rms_norm(t[0], t[1]); }},
      {"group_norm",
       {{{2, 6, 3}}, {{6}}, {{6}}},
       [](T t) { return group_norm(t[0], 3, t[1], t[2]); }},
      {"instance_norm", {{{2, 3, 2, 4}}}, [](T t) { return instance_norm(t[0]); }},
      {"batch_norm",
       {{{4, 3, 2}}, {{3}}, {{3}}},
       [](T t) {
         const auto [mean, var] = batch_statistics(t[0]);
         return batch_norm(t[0], mean, var, t[1], t[2]);
       }},
      {"batch_norm_of_given",
       {{{4, 3}}, {{3}}, {{3}, 0.5, 2}},
       [](T t) { return batch_norm(t[0], t[1], t[2]); }},
      {"normalize", {{{3, 5}}}, [](T t) { return normalize(t[0]); }},
      {"normalize_of_zero",
       {{{2, 2}, 0, 0, f32, {0, 0, 3, 4}}},
       [](T t) { return normalize(t[0]); },
       false},
  };
}

std::vector<OpCase> losses() {
  const Argument labels = {{3, 5}, 0, 1};
  const Argument classes = index_of({4}, {0, 2, 4, 2}), some = index_of({4}, {0, -100, 4, 2});
  const Argument signs = {{3, 5}, 0, 0, f32, {1, -1, -1, 1, 1, -1, 1, 1, -1, -1, -1, 1, 1, 1, -1}};
  return {
      {"l1_loss", {{{3, 5}}, {{3, 5}}}, [](T t) { return l1_loss(t[0], t[1]); }},
      {"huber_loss", {{{3, 5}}, {{3, 5}}}, [](T t) { return huber_loss(t[0], t[1], 0.7); }},
      {"smooth_l1_loss",
       {{{3, 5}}, {{3, 5}}},
       [](T t) { return smooth_l1_loss(t[0], t[1], 0.7, Reduction::kNone); }},
      {"smooth_l1_of_beta_0",
       {{{3, 5}}, {{3, 5}}},
       [](T t) { return smooth_l1_loss(t[0], t[1], 0, Reduction::kSum); }},
      {"mse_loss_batch_mean",
       {{{3, 5}}, {{3, 5}}},
       [](T t) { return mse_loss(t[0], t[1], Reduction::kBatchMean); }},
      {"poisson_nll_loss",
       {{{3, 5}}, {{3, 5}, 0.1, 4}},
       [](T t) { return poisson_nll_loss(t[0], t[1], {.full = true}); }},
      {"poisson_nll_of_rate",
       {{{3, 5}, 0.2, 3}, {{3, 5}, 0, 4}},
       [](T t) { return poisson_nll_loss(t[0], t[1], {.log_input = false}); }},
      {"gaussian_nll_loss",
       {{{3, 5}}, {{3, 5}}, {{3, 1}, 0.3, 2}},
       [](T t) { return gaussian_nll_loss(t[0], t[1], t[2], {.full = true}); }},
      {"cross_entropy_weighted",
       {{{4, 5}}, classes, {{5}, 0.2, 2}},
       [](T t) { return cross_entropy(t[0], t[1], {.weight = t[2]}); }},
      {"cross_entropy_smoothed",
       {{{4, 5}}, some, {{5}, 0.2, 2}},
       [](T t) {
         return cross_entropy(t[0], t[1],
                              {.weight = t[2], .ignore_index = -100, .label_smoothing = 0.3});
       }},
      {"cross_entropy_of_axis_1",
       {{{2, 3, 2}}, index_of({2, 2}, {0, 2, 1, 1})},
       [](T t) { return cross_entropy(t[0], t[1], {.axis = 1, .reduction = Reduction::kNone}); }},
      {"cross_entropy_by_distribution",
       {{{3, 5}}, labels, {{5}, 0.2, 2}},
       [](T t) { return cross_entropy(t[0], t[1], {.weight = t[2], .label_smoothing = 0.1}); }},
      {"cross_entropy_extremes",
       {{{3, 3}, 0, 0, f32, {1e4, -1e4, 0, -kInf, 3, 4, 1e4, 1e4, -1e4}}, index_of({3}, {1, 2, 0})},
       [](T t) { return cross_entropy(t[0], t[1], Reduction::kNone); },
       false},
      {"linear_cross_entropy_of_pieces",
       {{{4, 3}}, {{5, 3}}, some, {{5}}},
       [](T t) {
         return linear_cross_entropy(
             t[0], t[1], t[2],
             {.bias = t[3], .ignore_index = -100, .label_smoothing = 0.1, .rows = 3});
       }},
      {"linear_cross_entropy_of_pieces_sum",
       {{{2, 2, 3}}, {{5, 3}}, index_of({2, 2}, {0, 2, 4, 1})},
       [](T t) {
         return linear_cross_entropy(t[0], t[1], t[2], {.reduction = Reduction::kSum, .rows = 1});
       }},
      {"linear_cross_entropy_of_pieces_tied",
       {{{4, 5}}, {{5, 3}}, index_of({4}, {0, 2, 4, 1}), {{5}}},
       [](T t) {
         return linear_cross_entropy(matmul(t[0] + t[3], t[1]), t[1], t[2],
                                     {.bias = t[3], .rows = 2});
       }},
      {"linear_cross_entropy_of_pieces_each",
       {{{2, 2, 3}}, {{5, 3}}, index_of({2, 2}, {0, 2, 4, 1})},
       [](T t) {
         return linear_cross_entropy(t[0], t[1], t[2], {.reduction = Reduction::kNone, .rows = 3});
       }},
      {"linear_cross_entropy_of_all",
       {{{4, 3}}, {{5, 3}}, index_of({4}, {0, 2, 4, 1})},
       [](T t) { return linear_cross_entropy(t[0], t[1], t[2]); }},
      {"nll_loss",
       {{{4, 5}}, some},
       [](T t) { return nll_loss(t[0], t[1], {.ignore_index = -100}); }},
      {"binary_cross_entropy",
       {{{3, 5}, 0.05, 0.95}, labels, {{5}, 0.2, 2}},
       [](T t) { return binary_cross_entropy(t[0], t[1], {.weight = t[2]}); }},
      {"binary_cross_entropy_at_the_ends",
       {{{4}, 0, 0, f32, {0, 1, 0, 1}}, {{4}, 0, 0, f32, {0, 1, 1, 0}}},
       [](T t) { return binary_cross_entropy(t[0], t[1], {.reduction = Reduction::kNone}); },
       false},
      {"binary_cross_entropy_with_logits",
       {{{3, 5}, -4, 4}, labels, {{5}, 0.2, 2}},
       [](T t) {
         return binary_cross_entropy_with_logits(t[0], t[1],
                                                 {.weight = t[2], .pos_weight = t[2] * 2.0});
       }},
      {"binary_cross_entropy_with_logits_extremes",
       {{{4}, 0, 0, f32, {1e4, -1e4, 1e4, -1e4}}, {{4}, 0, 0, f32, {0, 1, 1, 0}}},
       [](T t) {
         return binary_cross_entropy_with_logits(t[0], t[1], {.reduction = Reduction::kNone});
       },
       false},
      {"kl_div", {{{3, 5}}, labels}, [](T t) { return kl_div(t[0], t[1], Reduction::kBatchMean); }},
      {"kl_div_of_zero",
       {{{3}}, {{3}, 0, 0, f32, {0, 1, 0.5}}},
       [](T t) { return kl_div(t[0], t[1], Reduction::kNone); },
       false},
      {"kl_div_of_logs",
       {{{3, 5}}, {{3, 5}}},
       [](T t) { return kl_div(t[0], t[1], Reduction::kSum, true); }},
      {"cosine_similarity",
       {{{3, 5}}, {{3, 5}}},
       [](T t) { return cosine_similarity(t[0], t[1]); }},
      {"cosine_similarity_of_zero",
       {{{2, 2}, 0, 0, f32, {0, 0, 3, 4}}, {{2, 2}}},
       [](T t) { return cosine_similarity(t[0], t[1]); },
       false},
      {"cosine_embedding_loss",
       {{{4, 5}}, {{4, 5}}, {{4}, 0, 0, i32, {1, -1, 1, -1}}},
       [](T t) { return cosine_embedding_loss(t[0], t[1], cast(t[2], f32), -0.9); }},
      {"hinge_embedding_loss",
       {{{3, 5}, -2, 0.7}, {{5}, 0, 0, i32, {1, -1, 1, -1, -1}}},
       [](T t) { return hinge_embedding_loss(t[0], broadcast_to(cast(t[1], f32), {3, 5}), 0.8); }},
      {"margin_ranking_loss",
       {{{3, 5}}, {{3, 5}}, signs},
       [](T t) { return margin_ranking_loss(t[0], t[1], t[2], 0.3); }},
      {"triplet_margin_loss",
       {{{3, 5}}, {{3, 5}}, {{3, 5}}},
       [](T t) { return triplet_margin_loss(t[0], t[1], t[2], 2); }},
      {"triplet_margin_loss_swapped",
       {{{3, 5}}, {{3, 5}}, {{3, 5}}},
       [](T t) { return triplet_margin_loss(t[0], t[1], t[2], 2, true); }},
  };
}

}  // namespace

std::vector<OpCase> function_cases() {
  std::vector<OpCase> all = pointwise_composites();
  for (const auto& part : {activations(), norms(), losses()}) append(all, part);
  return all;
}

std::vector<OpCase> arranging_cases() {
  return {
      {"full_like", {{{2, 3}}}, [](T t) { return t[0] * full_like(t[0], 2.5) + ones_like(t[0]); }},
      {"eye", {{{3, 4}}}, [](T t) { return t[0] + eye(3, 4) - zeros_like(t[0]); }},
      {"eye_i32", {{{3, 3}, -9, 9, i32}}, [](T t) { return t[0] + eye(3, -1, i32); }, false},
      {"linspace", {{{7}}}, [](T t) { return t[0] + linspace(-1, 2.5, 7) * linspace(3, 9, 1); }},
      {"one_hot", {index_of({2, 2}, {0, 2, -1, 3})}, [](T t) { return one_hot(t[0], 3); }, false},
      {"one_hot_u32",
       {index_of({3}, {2, 0, 4e9}, u32)},
       [](T t) { return one_hot(t[0], 3, boolean); },
       false},
      {"meshgrid",
       {{{2}}, {{3}}},
       [](T t) {
         const auto grids = meshgrid({t[0], t[1]});
         return grids[0] * grids[0] - grids[1];
       }},
      {"movedim", {{{2, 3, 4}}}, [](T t) { return movedim(t[0], {0, -1}, {-1, 1}); }},
      {"movedim_of_one", {{{2, 3, 4}}}, [](T t) { return movedim(t[0], {2}, {0}); }},
      {"swapaxes", {{{2, 3, 4}}}, [](T t) { return swapaxes(t[0], 0, 2); }},
      {"expand", {{{3, 1}}}, [](T t) { return expand(t[0], {2, -1, 4}); }},
      {"split",
       {{{2, 7}}},
       [](T t) {
         const auto parts = split(t[0], 3, 1);
         return concat({parts[2], parts[0] * parts[1]}, 1);
       }},
      {"split_by_sizes",
       {{{2, 7}}},
       [](T t) {
         const auto parts = split(t[0], {1, 4, 2}, -1);
         return concat({parts[1] * parts[0], parts[2]}, 1);
       }},
      {"chunk",
       {{{7, 2}}},
       [](T t) {
         const auto parts = chunk(t[0], 3);
         return concat({parts[2], parts[0] - parts[1]}, 0);
       }},
      {"unbind",
       {{{3, 2}}},
       [](T t) {
         const auto rows = unbind(t[0]);
         return rows[0] * rows[1] - rows[2];
       }},
      {"diagonal", {{{3, 4}}}, [](T t) { return diagonal(t[0]); }},
      {"diagonal_above", {{{3, 5}}}, [](T t) { return diagonal(t[0], 2); }},
      {"diagonal_below", {{{2, 4, 3}}}, [](T t) { return diagonal(t[0], -1, 1, 2); }},
      {"diagonal_of_outer_axes", {{{3, 2, 3}}}, [](T t) { return diagonal(t[0], 0, 0, 2); }},
      {"diagonal_of_one", {{{3, 2}}}, [](T t) { return diagonal(t[0], -2); }},
      {"tril", {{{2, 3, 4}}}, [](T t) { return tril(t[0], 1); }},
      {"triu", {{{4, 3}}}, [](T t) { return triu(t[0], -1); }},
      {"tril_i32", {{{3, 3}, -9, 9, i32}}, [](T t) { return tril(t[0]); }, false},
      {"diag", {{{3}}}, [](T t) { return diag(t[0]); }},
      {"diag_above", {{{3}}}, [](T t) { return diag(t[0], 2); }},
      {"diag_below", {{{3}}}, [](T t) { return diag(t[0], -1); }},
      {"diag_of_matrix", {{{3, 4}}}, [](T t) { return diag(t[0], 1); }},
      {"roll", {{{3, 4}}}, [](T t) { return roll(t[0], {1, -5}, {0, 1}); }},
      {"roll_by_nothing", {{{3, 4}}}, [](T t) { return roll(t[0], {6}, {0}) * 2.0; }},
      {"tile", {{{2, 3}}}, [](T t) { return tile(t[0], {2}); }},
      {"tile_more_axes", {{{2, 3}}}, [](T t) { return tile(t[0], {2, 1, 2}); }},
      {"repeat", {{{2, 3}}}, [](T t) { return repeat(t[0], {2, 3}); }},
      {"repeat_interleave", {{{2, 3}}}, [](T t) { return repeat_interleave(t[0], 3, 1); }},
      {"pad_reflect", {{{3, 4}}}, [](T t) { return pad(t[0], {3, 1, 0, 2}, PadMode::kReflect); }},
      {"pad_replicate",
       {{{3, 4}}},
       [](T t) { return pad(t[0], {5, 1, 2, 0}, PadMode::kReplicate); }},
      {"pad_circular", {{{3, 4}}}, [](T t) { return pad(t[0], {4, 1, 1, 3}, PadMode::kCircular); }},
      {"masked_fill",
       {{{3, 4}}, {{4}, 0, 1, boolean, {1, 0, 0, 1}}},
       [](T t) { return masked_fill(t[0], t[1], -7.0); }},
      {"index_select",
       {{{4, 3}}, index_of({5}, {3, 0, 0, 2, 3})},
       [](T t) { return index_select(t[0], 0, t[1]); }},
      {"index_select_last",
       {{{2, 4}}, index_of({3}, {1, 3, 1})},
       [](T t) { return index_select(t[0], -1, t[1]); }},
      {"take_along_dim",
       {{{4, 3}}, index_of({2, 1}, {3, 1})},
       [](T t) { return take_along_dim(t[0], t[1], 0); }},
      {"take_along_dim_of_wide_index",
       {{{1, 4}}, index_of({3, 2}, {3, 1, 0, 0, 2, 3})},
       [](T t) { return take_along_dim(t[0], t[1], 1); }},
      {"scatter",
       {{{4, 2}}, index_of({3, 2}, {3, 0, 1, 0, 3, 2}), {{3, 2}}},
       [](T t) { return scatter(t[0], 0, t[1], t[2]); }},
      {"scatter_out_of_range",
       {{{2, 3}}, index_of({2, 4}, {-1, 0, 3, 2, 9, 1, 1, 1}), {{2, 4}}},
       [](T t) { return scatter(t[0], 1, t[1], t[2]); }},
      {"scatter_max",
       {{{4, 2}}, index_of({5, 2}, {3, 0, 1, 0, 3, 2, 1, 1, 3, 0}), {{5, 2}}},
       [](T t) { return scatter_max(t[0], 0, t[1], t[2]); }},
      {"scatter_max_out_of_range",
       {{{2, 3}}, index_of({2, 4}, {-1, 0, 3, 2, 9, 1, 1, 1}), {{2, 4}}},
       [](T t) { return scatter_max(t[0], 1, t[1], t[2]); }},
      {"scatter_min",
       {{{4, 2}}, index_of({5, 2}, {3, 0, 1, 0, 3, 2, 1, 1, 3, 0}), {{5, 2}}},
       [](T t) { return scatter_min(t[0], 0, t[1], t[2]); }},
      {"segment_softmax",
       {{{6, 2}}, index_of({6}, {2, 0, 2, 3, 0, 2})},
       [](T t) { return segment_softmax(t[0], t[1], 4); }},
      {"segment_softmax_out_of_range",
       {{{2, 5}}, index_of({5}, {1, -1, 0, 2, 1})},
       [](T t) { return segment_softmax(t[0], t[1], 2, -1); }},
      {"index_add",
       {{{2, 4}}, index_of({3}, {1, 3, 1}), {{2, 3}}},
       [](T t) { return index_add(t[0], 1, t[1], t[2]); }},
      {"einsum_matmul", {{{3, 4}}, {{4, 2}}}, [](T t) { return einsum("ij, jk -> ik", t); }},
      {"einsum_batched", {{{2, 3, 4}}, {{2, 5, 4}}}, [](T t) { return einsum("bij,bkj->kbi", t); }},
      {"einsum_dots", {{{2, 1, 3, 4}}, {{5, 4, 2}}}, [](T t) { return einsum("...ij,...jk", t); }},
      {"einsum_trace", {{{3, 3}}}, [](T t) { return einsum("ii", t); }},
      {"einsum_diagonal", {{{3, 2, 3}}}, [](T t) { return einsum("aba->ba", t); }},
      {"einsum_sums", {{{2, 3, 4}}, {{4, 5}}}, [](T t) { return einsum("abc,cd->b", t); }},
      {"einsum_three",
       {{{2, 3}}, {{3, 4}}, {{4, 2}}},
       [](T t) { return einsum("ab,bc,cd->ad", t); }},
      {"einsum_outer", {{{2}}, {{3}}}, [](T t) { return einsum("a,b->ba", t); }},
      {"einsum_size_one", {{{1, 3}}, {{4, 3}}}, [](T t) { return einsum("ab,ab->b", t); }},
      {"einsum_transpose", {{{2, 3}}}, [](T t) { return einsum("ba", t); }},
      {"tensordot", {{{2, 3, 4}}, {{3, 4, 5}}}, [](T t) { return tensordot(t[0], t[1]); }},
      {"tensordot_axes",
       {{{2, 3, 4}}, {{4, 5, 2}}},
       [](T t) { return tensordot(t[0], t[1], {0, 2}, {2, 0}); }},
      {"outer", {{{3}}, {{2}}}, [](T t) { return outer(t[0], t[1]); }},
      {"dot", {{{3}}, {{3}}}, [](T t) { return dot(t[0], t[1]); }},
      {"matmul_of_vectors", {{{3}}, {{3}}}, [](T t) { return matmul(t[0], t[1]); }},
      {"matmul_by_row", {{{3}}, {{2, 3, 4}}}, [](T t) { return matmul(t[0], t[1]); }},
      {"matmul_by_column", {{{2, 4, 3}}, {{3}}}, [](T t) { return matmul(t[0], t[1]); }},
  };
}

}  // namespace tensorgrad::testing
