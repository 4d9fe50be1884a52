// SPDX-License-Identifier: MIT
// Mistakes with ops that create tensors.
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

using CreationErrors = Traced;

TEST_F(CreationErrors, size_not_positive) {
  EXPECT_ERROR(arange(0), ShapeError, "arange: every size must be at least 1, got [0]");
  EXPECT_ERROR(zeros({2, 0}), ShapeError, "zeros: every size must be at least 1, got [2,0]");
  EXPECT_ERROR(ones({-2}), ShapeError, "ones: every size must be at least 1, got [-2]");
}

TEST_F(CreationErrors, full_of_fraction_as_integer) {
  EXPECT_ERROR(full({2}, 0.5, i32), DtypeError, "full: the number 0.5 is not representable as i32");
}

TEST_F(CreationErrors, full_too_many_elements) {
  EXPECT_ERROR(full({1 << 16, 1 << 16}, 1), ShapeError,
               "full: [65536,65536] has more than 2^31-1 elements, the limit of a tensor");
}

TEST_F(CreationErrors, constant_too_few_values) {
  EXPECT_ERROR(constant(std::vector<float>{1, 2}, {3}), ShapeError,
               "constant: [3] has 3 elements, got 2 values");
}

}  // namespace tensorgrad::testing
