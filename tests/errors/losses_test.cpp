// SPDX-License-Identifier: MIT
// Mistakes with losses.
#include "errors/example.h"

namespace tensorgrad::testing {

using CrossEntropyErrors = Traced;

TEST_F(CrossEntropyErrors, label_smoothing_above_one) {
  EXPECT_ERROR(cross_entropy(y, i, {.label_smoothing = 1.5}), UserError,
               "cross_entropy: label_smoothing must be in [0, 1], got 1.5");
}

TEST_F(CrossEntropyErrors, targets_of_floats) {
  EXPECT_ERROR(cross_entropy(x, sum(x, 1)), DtypeError,
               "cross_entropy: targets must be i32, got f32");
  EXPECT_ERROR(nll_loss(y, y), DtypeError, "nll_loss: targets must be i32, got f32");
}

TEST_F(CrossEntropyErrors, targets_shape_differs) {
  EXPECT_ERROR(cross_entropy(transpose(x), i), ShapeError,
               "cross_entropy: targets must be [3] for logits [3,4], got [4]");
}

TEST_F(CrossEntropyErrors, ignore_index_with_distribution) {
  EXPECT_ERROR(cross_entropy(y, y, {.ignore_index = 0}), UserError,
               "cross_entropy: ignore_index requires i32 targets, got f32");
}

TEST_F(CrossEntropyErrors, weight_size_differs) {
  EXPECT_ERROR(cross_entropy(y, i, {.weight = ones({3})}), ShapeError,
               "cross_entropy: weight must be [2] for logits [4,2], got [3]");
}

TEST_F(CrossEntropyErrors, binary_with_pos_weight) {
  EXPECT_ERROR(binary_cross_entropy(sigmoid(y), y, {.pos_weight = ones({2})}), UserError,
               "binary_cross_entropy: pos_weight requires binary_cross_entropy_with_logits");
}

using LinearCrossEntropyErrors = Traced;

TEST_F(LinearCrossEntropyErrors, rows_negative) {
  EXPECT_ERROR(linear_cross_entropy(x, zeros({2, 3}), i, {.rows = -1}), UserError,
               "linear_cross_entropy: rows must be 0 or more, got -1");
}

TEST_F(LinearCrossEntropyErrors, inner_sizes_differ) {
  EXPECT_ERROR(linear_cross_entropy(y, zeros({2, 3}), i), ShapeError,
               "linear_cross_entropy: inner sizes differ: x [4,2], weight [2,3] ([classes, size])");
}

TEST_F(LinearCrossEntropyErrors, targets_of_floats) {
  EXPECT_ERROR(linear_cross_entropy(x, zeros({2, 3}), sum(x, 1)), DtypeError,
               "linear_cross_entropy: targets must be i32, got f32");
}

TEST_F(LinearCrossEntropyErrors, targets_shape_differs) {
  EXPECT_ERROR(linear_cross_entropy(x, zeros({2, 3}), reshape(i, {2, 2})), ShapeError,
               "linear_cross_entropy: targets must be [4] for x [4,3], got [2,2]");
}

TEST_F(LinearCrossEntropyErrors, bias_size_differs) {
  EXPECT_ERROR(linear_cross_entropy(x, zeros({2, 3}), i, {.bias = zeros({1}), .rows = 2}),
               ShapeError, "linear_cross_entropy: expected bias [2], got [1]");
}

using RegressionLossErrors = Traced;

TEST_F(RegressionLossErrors, shapes_differ) {
  EXPECT_ERROR(mse(y, narrow(y, 1, 0, 1)), ShapeError, "mse: shapes differ: a [4,2], b [4,1]");
  EXPECT_ERROR(l1_loss(y, narrow(y, 1, 0, 1)), ShapeError,
               "l1_loss: shapes differ: a [4,2], b [4,1]");
  EXPECT_ERROR(cosine_embedding_loss(y, y, y), ShapeError,
               "cosine_embedding_loss: shapes differ: cosines [4], targets [4,2]");
}

TEST_F(RegressionLossErrors, huber_loss_delta_zero) {
  EXPECT_ERROR(huber_loss(y, y, 0), UserError, "huber_loss: delta must be more than 0, got 0");
}

TEST_F(RegressionLossErrors, mse_of_integers) {
  EXPECT_ERROR(mse(i, i), DtypeError, "mse: expected f32, got i32");
}

}  // namespace tensorgrad::testing
