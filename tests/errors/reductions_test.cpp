// SPDX-License-Identifier: MIT
// Mistakes with reductions, scans over an axis, and sorting.
#include "errors/example.h"

namespace tensorgrad::testing {

using ReductionErrors = Traced;

TEST_F(ReductionErrors, axis_out_of_range) {
  EXPECT_ERROR(sum(x, 2), ShapeError, "sum: axis 2 is out of range for [4,3]");
  EXPECT_ERROR(argmax(sum(x), -1), ShapeError, "argmax: axis -1 is out of range for []");
  EXPECT_ERROR(softmax(x, 5), ShapeError, "softmax: axis 5 is out of range for [4,3]");
  EXPECT_ERROR(cumsum(x, 2), ShapeError, "cumsum: axis 2 is out of range for [4,3]");
  EXPECT_ERROR(argsort(x, -3), ShapeError, "argsort: axis -3 is out of range for [4,3]");
}

TEST_F(ReductionErrors, max_axis_repeated) {
  EXPECT_ERROR(max(x, {0, -2}), ShapeError, "max: an axis is repeated");
}

TEST_F(ReductionErrors, integers_unsupported) {
  EXPECT_ERROR(mean(i), DtypeError, "mean: expected f32, got i32");
  EXPECT_ERROR(norm(i), DtypeError, "norm: expected f32, got i32");
  EXPECT_ERROR(softmax(i), DtypeError, "softmax: expected f32, got i32");
  EXPECT_ERROR(logcumsumexp(i, 0), DtypeError, "logcumsumexp: expected f32, got i32");
}

TEST_F(ReductionErrors, norm_power_negative) {
  EXPECT_ERROR(norm(x, -1), UserError, "norm: p must be more than 0, got -1");
}

TEST_F(ReductionErrors, variance_of_one_element) {
  EXPECT_ERROR(var(narrow(x, 0, 0, 1), 0), ShapeError,
               "var: 1 elements with a correction of 1 leave no degrees of freedom");
  EXPECT_ERROR(tensorgrad::std(narrow(x, 1, 0, 1), 1), ShapeError,
               "std: 1 elements with a correction of 1 leave no degrees of freedom");
}

TEST_F(ReductionErrors, topk_more_than_elements) {
  EXPECT_ERROR(topk(x, 4), ShapeError, "topk: k must be in [1, 3] for axis -1 of [4,3], got 4");
}

}  // namespace tensorgrad::testing
