// SPDX-License-Identifier: MIT
// Mistakes with normalization.
#include "errors/example.h"

namespace tensorgrad::testing {

using NormalizationErrors = Traced;

TEST_F(NormalizationErrors, weight_or_statistics_size_differs) {
  EXPECT_ERROR(batch_norm(x, zeros({2}), ones({3})), ShapeError,
               "batch_norm: mean and var must be [3] for x [4,3], got [2] and [3]");
  EXPECT_ERROR(layer_norm(x, zeros({4})), ShapeError,
               "layer_norm: weight and bias must be [3] for x [4,3], got [4]");
}

TEST_F(NormalizationErrors, layer_norm_axes_differ) {
  EXPECT_ERROR(layer_norm(sum(x)), ShapeError, "layer_norm: axis -1 is out of range for []");
  EXPECT_ERROR(layer_norm(x, Shape{4}), ShapeError,
               "layer_norm: the last axes of x [4,3] are not [4]");
}

TEST_F(NormalizationErrors, group_norm_groups_do_not_divide_channels) {
  EXPECT_ERROR(group_norm(x, 2), ShapeError,
               "group_norm: the 3 channels of x [4,3] cannot be divided into 2 groups");
}

}  // namespace tensorgrad::testing
