// SPDX-License-Identifier: MIT
// Convolutions, pooling and resizing, with the geometries that select different code paths.

#include "op_cases.h"
#include "ops/registry.h"

namespace tensorgrad::testing {
namespace {

using T = const std::vector<Tensor>&;

OpCase conv(const std::string& name, const Shape& x, const Shape& weight,
            const Conv2dOptions& options = {}) {
  return {"conv2d_" + name, {{x}, {weight, -1, 1}}, [options](T t) {
            return conv2d(t[0], t[1], std::nullopt, options);
          }};
}

OpCase transposed(const std::string& name, const Shape& x, const Shape& weight,
                  const ConvTranspose2dOptions& options = {}) {
  return {"conv_transpose2d_" + name, {{x}, {weight, -1, 1}}, [options](T t) {
            return conv_transpose2d(t[0], t[1], std::nullopt, options);
          }};
}

// Draws from a range so wide that no finite-difference step changes which element is the maximum.
Argument apart(const Shape& shape) { return {shape, -9, 9}; }

}  // namespace

std::vector<OpCase> conv_cases() {
  std::vector<OpCase> cases = {
      conv("plain", {2, 3, 5, 6}, {4, 3, 3, 2}),
      conv("padded", {2, 2, 4, 5}, {3, 2, 3, 3}, {.padding = 1}),
      conv("padded_apart", {1, 2, 4, 5}, {3, 2, 3, 3}, {.padding = {2, 0}}),
      conv("strided", {2, 2, 7, 6}, {3, 2, 3, 2}, {.stride = {2, 3}}),
      conv("strided_padded", {2, 2, 6, 7}, {2, 2, 3, 3}, {.stride = 2, .padding = 1}),
      conv("dilated", {1, 2, 7, 8}, {2, 2, 3, 2}, {.dilation = {2, 3}}),
      conv("all", {2, 4, 8, 9}, {4, 2, 3, 2},
           {.stride = {2, 3}, .padding = {2, 1}, .dilation = {2, 3}, .groups = 2}),
      conv("grouped", {2, 6, 4, 4}, {4, 3, 2, 2}, {.groups = 2}),
      conv("depthwise", {2, 4, 5, 5}, {4, 1, 3, 3}, {.padding = 1, .groups = 4}),
      conv("depthwise_times_two", {2, 3, 4, 5}, {6, 1, 2, 3}, {.stride = 2, .groups = 3}),
      conv("one_by_one", {2, 3, 4, 4}, {5, 3, 1, 1}),
      conv("one_by_one_strided", {2, 3, 5, 4}, {2, 3, 1, 1}, {.stride = 2}),
      conv("one_by_one_padded", {1, 2, 3, 3}, {2, 2, 1, 1}, {.stride = 3, .padding = 2}),
      conv("all_padding", {1, 1, 1, 1}, {2, 1, 1, 1}, {.stride = 9, .padding = 2}),
      conv("kernel_as_large", {3, 2, 4, 3}, {3, 2, 4, 3}),
      conv("kernel_larger_than_x", {1, 2, 2, 3}, {2, 2, 4, 5}, {.padding = 1}),
      conv("batch_of_one", {1, 1, 5, 5}, {1, 1, 2, 2}),
      {"conv2d_bias_relu",
       {{{2, 2, 5, 5}}, {{3, 2, 3, 3}, -1, 1}, {{3}}},
       [](T t) { return relu(conv2d(t[0], t[1], t[2], {.padding = 1})) + 0.1; }},
      {"conv2d_of_expression",
       {{{2, 2, 5, 5}}, {{3, 2, 3, 3}, -1, 1}},
       [](T t) { return conv2d(tanh(t[0]) * 0.5, exp(t[1]), std::nullopt, {.padding = 1}); }},
      {"conv2d_twice",
       {{{1, 1, 6, 6}}, {{2, 1, 3, 3}, -1, 1}, {{1, 2, 3, 3}, -1, 1}},
       [](T t) {
         return conv2d(conv2d(t[0], t[1], std::nullopt, {.padding = 1}), t[2], std::nullopt,
                       {.stride = 2, .padding = 1});
       }},
      {"conv2d_wide",
       {{{3, 5, 17, 19}, -1, 1}, {{35, 5, 3, 3}, -1, 1}},
       [](T t) { return conv2d(t[0], t[1], std::nullopt, {.padding = 1}); },
       false},
      {"conv2d_gradients_wide",
       {{{4, 18, 12, 11}, -1, 1}, {{33, 18, 3, 3}, -1, 1}},
       [](T t) {
         const Tensor y = conv2d(t[0], t[1], std::nullopt, {.padding = 1});
         const std::vector<Tensor> d = grad(sum(square(y)) * 0.01, {t[0], t[1]});
         return concat({flatten(d[0]), flatten(d[1])}) * 0.05;
       },
       false},
      {"conv1d",
       {{{2, 3, 9}}, {{4, 3, 3}, -1, 1}, {{4}}},
       [](T t) { return conv1d(t[0], t[1], t[2], {.stride = 2, .padding = 1, .dilation = 2}); }},
      {"conv1d_grouped",
       {{{2, 4, 6}}, {{4, 2, 2}, -1, 1}},
       [](T t) { return conv1d(t[0], t[1], std::nullopt, {.groups = 2}); }},
      transposed("plain", {2, 3, 3, 4}, {3, 2, 3, 2}),
      transposed("strided", {2, 2, 3, 4}, {2, 3, 3, 2}, {.stride = {2, 3}}),
      transposed("all", {2, 4, 3, 4}, {4, 2, 3, 2},
                 {.stride = {3, 2},
                  .padding = {1, 2},
                  .output_padding = {2, 1},
                  .groups = 2,
                  .dilation = {2, 3}}),
      transposed("padding_beyond_kernel", {1, 2, 4, 5}, {2, 2, 1, 2}, {.stride = 2, .padding = 2}),
      transposed("one_pixel", {2, 3, 1, 1}, {3, 2, 4, 4}, {.stride = 2, .padding = 1}),
      transposed("output_padding_of_a_stride", {2, 2, 3, 3}, {2, 2, 2, 2},
                 {.output_padding = 1, .dilation = 2}),
      transposed("output_padding_within_padding", {1, 2, 3, 4}, {2, 2, 2, 2},
                 {.padding = 2, .output_padding = 1, .dilation = 2}),
      transposed("output_padding_of_more_strides", {1, 4, 2, 3}, {4, 1, 2, 3},
                 {.stride = {2, 1},
                  .padding = {1, 2},
                  .output_padding = {5, 1},
                  .groups = 2,
                  .dilation = {6, 3}}),
      {"conv_transpose1d_output_padding_of_a_stride",
       {{{2, 2, 4}}, {{2, 3, 2}, -1, 1}},
       [](T t) {
         return conv_transpose1d(t[0], t[1], std::nullopt,
                                 {.stride = 2, .output_padding = 3, .dilation = 4});
       }},
      {"conv_transpose1d",
       {{{2, 3, 4}}, {{3, 2, 3}, -1, 1}, {{2}}},
       [](T t) {
         return conv_transpose1d(t[0], t[1], t[2],
                                 {.stride = 2, .padding = 1, .output_padding = 1});
       }},
      {"conv2d_second_order",
       {{{2, 2, 4, 5}}, {{2, 2, 2, 3}, -1, 1}},
       [](T t) {  // differentiates the gradients, which covers every rule of the three macros
         const Tensor y = conv2d(t[0], t[1], std::nullopt, {.stride = 2, .padding = 1});
         const std::vector<Tensor> d = grad(sum(y * y * y) * 0.1, {t[0], t[1]});
         return concat({flatten(d[0]), flatten(d[1])});
       }},
      {"conv_transpose2d_second_order",
       {{{1, 2, 2, 3}}, {{2, 1, 2, 2}, -1, 1}},
       [](T t) {
         const Tensor y = conv_transpose2d(t[0], t[1], std::nullopt, {.stride = 2});
         const std::vector<Tensor> d = grad(sum(y * y * y) * 0.1, {t[0], t[1]});
         return concat({flatten(d[0]), flatten(d[1])});
       }},
      {"conv_transpose2d_output_padding_second_order",
       {{{1, 2, 2, 2}}, {{2, 1, 2, 2}, -1, 1}},
       [](T t) {
         const Tensor y = conv_transpose2d(t[0], t[1], std::nullopt,
                                           {.padding = 1, .output_padding = 2, .dilation = 3});
         const std::vector<Tensor> d = grad(sum(y * y * y) * 0.1, {t[0], t[1]});
         return concat({flatten(d[0]), flatten(d[1])});
       }},
  };
  return cases;
}

std::vector<OpCase> pool_cases() {
  const Argument ties = {{1, 1, 3, 4}, 0, 0, f32, {2, 2, 1, 5, 2, 2, 5, 5, kNan, 0, kNan, kNan}};
  return {
      {"unfold", {{{3, 7}}}, [](T t) { return unfold(t[0], 1, 3, 2); }},
      {"unfold_first_axis", {{{7, 3}}}, [](T t) { return unfold(t[0], 0, 2, 1); }},
      {"unfold_dilated", {{{2, 9, 2}}}, [](T t) { return unfold(t[0], 1, 3, 2, 3); }},
      {"unfold_of_one", {{{2, 5}}}, [](T t) { return unfold(t[0], 1, 1, 2); }},
      {"unfold_whole", {{{2, 5}}}, [](T t) { return unfold(t[0], -1, 5, 3); }},
      {"unfold_side_by_side", {{{2, 6}}}, [](T t) { return unfold(t[0], 1, 2, 2); }},
      {"unfold_twice",
       {{{2, 5, 6}}},
       [](T t) { return unfold(unfold(t[0], 1, 3, 1), 2, 2, 2, 2); }},
      {"unfold_of_pad_of_flip",
       {{{3, 6}}},
       [](T t) { return unfold(pad(flip(t[0], 1), {2, 1}), 1, 3, 2); }},
      {"sum_of_unfold_of_exp", {{{3, 6}}}, [](T t) { return sum(unfold(exp(t[0]), 1, 3, 1), -1); }},
      {"max_pool2d", {apart({2, 2, 4, 6})}, [](T t) { return max_pool2d(t[0], 2); }},
      {"max_pool2d_left_over", {apart({1, 2, 5, 7})}, [](T t) { return max_pool2d(t[0], {2, 3}); }},
      {"max_pool2d_overlapping",
       {apart({2, 1, 6, 7})},
       [](T t) { return max_pool2d(t[0], 3, {.stride = {2, 1}, .padding = 1}); }},
      {"max_pool2d_dilated",
       {apart({1, 2, 7, 6})},
       [](T t) { return max_pool2d(t[0], {3, 2}, {.stride = 1, .dilation = {2, 3}}); }},
      {"max_pool2d_large",
       {apart({2, 2, 7, 6})},
       [](T t) { return max_pool2d(t[0], {5, 6}, {.stride = 2, .padding = {1, 0}}); }},
      {"max_pool2d_of_all", {apart({2, 3, 5, 5})}, [](T t) { return max_pool2d(t[0], 5); }},
      {"max_pool2d_below_zero",
       {{{1, 1, 4, 4}, -3, -2}},
       [](T t) { return max_pool2d(t[0], 3, {.stride = 2, .padding = 1}); },
       false},
      {"max_pool2d_ties_and_nan",
       {ties},
       [](T t) { return max_pool2d(t[0], 2, {.stride = 1}); },
       false,
       true},
      {"max_pool2d_gradient_at_ties",
       {{{1, 1, 3, 4}, 0, 0, f32, {2, 2, 1, 5, 2, 2, 5, 5, 0, 0, 5, 5}}},
       [](T t) {
         const Tensor y = max_pool2d(t[0], 2, {.stride = 1});
         return grad(sum(square(y)), {t[0]})[0];
       },
       false},
      {"max_pool2d_gradient_at_nan",
       {ties},
       [](T t) {
         const Tensor weights = iota({1, 1, 2, 3}, 3, f32) + 1.0;
         return grad(sum(max_pool2d(t[0], 2, {.stride = 1}) * weights), {t[0]})[0];
       },
       false,
       true},
      {"max_pool2d_second_order",
       {apart({1, 1, 4, 5})},
       [](T t) {
         const Tensor y = max_pool2d(t[0], 2, {.stride = {2, 1}});
         return grad(sum(y * y * y), {t[0]})[0] * 0.1;
       }},
      {"max_pool2d_third_order",
       {apart({1, 1, 4, 5})},
       [](T t) {
         const Tensor y = max_pool2d(t[0], 2, {.stride = {2, 1}});
         const Tensor first = grad(sum(y * y * y), {t[0]})[0];
         return grad(sum(first * first * first), {t[0]})[0] * 0.01;
       }},
      {"max_pool1d",
       {apart({2, 2, 7})},
       [](T t) { return max_pool1d(t[0], 3, {.stride = 2, .padding = 1}); }},
      {"avg_pool2d", {{{2, 2, 4, 6}}}, [](T t) { return avg_pool2d(t[0], 2); }},
      {"avg_pool2d_overlapping",
       {{{1, 2, 5, 6}}},
       [](T t) { return avg_pool2d(t[0], 3, {.stride = {2, 1}, .padding = 1}); }},
      {"avg_pool2d_of_what_is_inside",
       {{{1, 2, 5, 6}}},
       [](T t) {
         return avg_pool2d(t[0], {3, 2},
                           {.stride = {2, 3}, .padding = 1, .count_include_pad = false});
       }},
      {"avg_pool2d_large",
       {{{1, 2, 6, 5}}},
       [](T t) { return avg_pool2d(t[0], 5, {.stride = 1}); }},
      {"avg_pool2d_second_order",
       {{{1, 1, 4, 5}}},
       [](T t) {
         const Tensor y = avg_pool2d(t[0], 2, {.stride = 1});
         return grad(sum(y * y * y), {t[0]})[0];
       }},
      {"avg_pool1d",
       {{{2, 2, 7}}},
       [](T t) { return avg_pool1d(t[0], 3, {.padding = 1, .count_include_pad = false}); }},
      {"adaptive_avg_pool2d",
       {{{2, 2, 5, 7}}},
       [](T t) { return adaptive_avg_pool2d(t[0], {3, 4}); }},
      {"adaptive_avg_pool2d_to_more",
       {{{1, 2, 2, 3}}},
       [](T t) { return adaptive_avg_pool2d(t[0], {3, 5}); }},
      {"adaptive_avg_pool2d_to_one",
       {{{2, 3, 5, 4}}},
       [](T t) { return adaptive_avg_pool2d(t[0], 1); }},
      {"adaptive_max_pool2d",
       {apart({2, 2, 5, 7})},
       [](T t) { return adaptive_max_pool2d(t[0], {3, 4}); }},
      {"adaptive_max_pool2d_even",
       {apart({1, 2, 4, 6})},
       [](T t) { return adaptive_max_pool2d(t[0], {2, 3}); }},
      {"interpolate_twice", {{{2, 2, 2, 3}}}, [](T t) { return interpolate(t[0], {4, 9}); }},
      {"interpolate_nearest", {{{2, 2, 4, 5}}}, [](T t) { return interpolate(t[0], {7, 3}); }},
      {"interpolate_bilinear",
       {{{2, 2, 3, 4}}},
       [](T t) { return interpolate(t[0], {5, 7}, Interpolation::kBilinear); }},
      {"interpolate_bilinear_smaller",
       {{{1, 2, 5, 6}}},
       [](T t) { return interpolate(t[0], {3, 2}, Interpolation::kBilinear); }},
      {"interpolate_bilinear_corners",
       {{{1, 2, 3, 4}}},
       [](T t) { return interpolate(t[0], {5, 1}, Interpolation::kBilinear, true); }},
  };
}

}  // namespace tensorgrad::testing
