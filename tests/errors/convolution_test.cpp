// SPDX-License-Identifier: MIT
// Mistakes with convolutions, pooling and interpolation.
#include "errors/example.h"

namespace tensorgrad::testing {

using ConvolutionErrors = Traced;

TEST_F(ConvolutionErrors, conv1d_bias_size_differs) {
  EXPECT_ERROR(conv1d(zeros({1, 2, 5}), zeros({4, 2, 3}), zeros({3})), ShapeError,
               "conv1d: bias must be [4], got [3]");
}

TEST_F(ConvolutionErrors, conv2d_input_unsupported) {
  EXPECT_ERROR(conv2d(zeros({1, 1, 3, 3}, i32), zeros({1, 1, 2, 2})), DtypeError,
               "conv2d: expected f32, got i32[1,1,3,3]");
  EXPECT_ERROR(conv2d(zeros({3, 5, 5}), zeros({4, 3, 3, 3})), ShapeError,
               "conv2d: expected x and weight with 4 axes, got x [3,5,5], weight [4,3,3,3]");
}

TEST_F(ConvolutionErrors, conv2d_option_out_of_range) {
  EXPECT_ERROR(conv2d(zeros({1, 1, 3, 3}), zeros({1, 1, 2, 2}), {}, {.padding = -1}), ShapeError,
               "conv2d: padding must be at least 0, got -1");
  EXPECT_ERROR(conv2d(zeros({1, 1, 3, 3}), zeros({1, 1, 2, 2}), {}, {.stride = {1, 0}}), ShapeError,
               "conv2d: stride must be at least 1, got 0");
  EXPECT_ERROR(conv2d(zeros({1, 1, 3, 9}), zeros({1, 1, 6, 6}), {}, {.padding = 1}), ShapeError,
               "conv2d: a kernel of 6 is larger than the height of 3 with padding 1");
}

TEST_F(ConvolutionErrors, conv2d_groups_do_not_divide_channels) {
  EXPECT_ERROR(conv2d(zeros({1, 3, 5, 5}), zeros({4, 1, 3, 3}), {}, {.groups = 2}), ShapeError,
               "conv2d: 3 channels cannot be divided into 2 groups");
}

TEST_F(ConvolutionErrors, conv2d_channels_differ) {
  EXPECT_ERROR(conv2d(zeros({1, 3, 5, 5}), zeros({4, 2, 3, 3})), ShapeError,
               "conv2d: x has 3 channels on axis 1, the weight expects 2");
  EXPECT_ERROR(conv2d(zeros({1, 6, 5, 5}), zeros({4, 2, 3, 3}), {}, {.groups = 2}), ShapeError,
               "conv2d: x has 6 channels on axis 1, the weight expects 4");
  EXPECT_ERROR(conv_transpose2d(zeros({1, 3, 5, 5}), zeros({2, 4, 3, 3})), ShapeError,
               "conv_transpose2d: x has 3 channels on axis 1, the weight expects 2");
}

TEST_F(ConvolutionErrors, conv2d_layer_groups_do_not_divide_channels) {
  EXPECT_ERROR(nn::Conv2d(3, 4, 3, {.groups = 2}), ShapeError,
               "Conv2d: 2 groups do not divide the channels 4 and 3");
}

TEST_F(ConvolutionErrors, conv_transpose2d_output_padding_too_large) {
  EXPECT_ERROR(conv_transpose2d(zeros({1, 2, 3, 3}), zeros({2, 1, 2, 2}), {},
                                {.stride = 2, .output_padding = 2}),
               ShapeError,
               "conv_transpose2d: output_padding must be less than stride or dilation, got 2");
}

using PoolingErrors = Traced;

TEST_F(PoolingErrors, option_out_of_range) {
  EXPECT_ERROR(adaptive_avg_pool2d(zeros({1, 1, 4, 4}), {0, 2}), ShapeError,
               "adaptive_avg_pool2d: every size must be at least 1, got [0,2]");
  EXPECT_ERROR(avg_pool2d(zeros({1, 1, 4, 4}), 0), ShapeError,
               "avg_pool2d: kernel must be at least 1, got 0");
  EXPECT_ERROR(max_pool2d(zeros({1, 1, 4, 4}), 2, {.padding = 2}), ShapeError,
               "max_pool2d: padding must be at most half of the kernel, got 2 for 2");
}

using InterpolateErrors = Traced;

TEST_F(InterpolateErrors, align_corners_with_nearest) {
  EXPECT_ERROR(interpolate(zeros({1, 1, 4, 4}), 8, Interpolation::kNearest, true), UserError,
               "interpolate: align_corners is only supported for bilinear interpolation");
}

TEST_F(InterpolateErrors, integer_input) {
  EXPECT_ERROR(interpolate(zeros({1, 1, 4, 4}, i32), 8), DtypeError,
               "interpolate: expected f32, got i32[1,1,4,4]");
}

TEST_F(InterpolateErrors, target_size_zero) {
  EXPECT_ERROR(interpolate(zeros({1, 1, 2, 2}), {0, 4}), ShapeError,
               "interpolate: every size must be at least 1, got [0,4]");
}

}  // namespace tensorgrad::testing
