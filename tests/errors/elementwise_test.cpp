// SPDX-License-Identifier: MIT
// Mistakes with element-wise ops.
#include "errors/example.h"

namespace tensorgrad::testing {

using PointwiseErrors = Traced;

TEST_F(PointwiseErrors, operand_type_unsupported) {
  EXPECT_ERROR((x > 0) + (x > 0), DtypeError, "add: expected f32 or i32 or u32, got bool");
  EXPECT_ERROR(clamp(i > 0, 0, 1), DtypeError, "clamp: expected f32 or i32 or u32, got bool");
  EXPECT_ERROR(exp(i), DtypeError, "exp: expected f32, got i32");
  EXPECT_ERROR(bitwise_not(x), DtypeError, "bitwise_not: expected i32 or u32, got f32");
  EXPECT_ERROR(unpack_bytes(x), DtypeError, "unpack_bytes: expected u32, got f32");
  EXPECT_ERROR(bitcast(x, f16), DtypeError,
               "bitcast: expected f32 or i32 or u32 as the target, got f16");
}

TEST_F(PointwiseErrors, operand_types_differ) {
  EXPECT_ERROR(x * reshape(i, {4, 1}), DtypeError, "mul: dtypes differ: a f32, b i32");
  EXPECT_ERROR(where(i > 0, flatten(narrow(x, 1, 0, 1)), i), DtypeError,
               "where: dtypes differ: a bool, b f32, c i32");
}

TEST_F(PointwiseErrors, operand_shapes_do_not_broadcast) {
  EXPECT_ERROR(x + y, ShapeError, "add: shapes do not broadcast: a [4,3], b [4,2]");
}

TEST_F(PointwiseErrors, number_not_representable) {
  EXPECT_ERROR(i + 0.5, DtypeError, "add: the number 0.5 is not representable as i32");
  EXPECT_ERROR(i + 3e9, DtypeError, "add: the number 3000000000 is not representable as i32");
  EXPECT_ERROR(arange(4, u32) * -1, DtypeError, "mul: the number -1 is not representable as u32");
  EXPECT_ERROR(pow(i, 0.5), DtypeError, "pow: the number 0.5 is not representable as i32");
  EXPECT_ERROR(clamp(i, 0.5, 3), DtypeError, "clamp: the number 0.5 is not representable as i32");
}

TEST_F(PointwiseErrors, bounds_swapped) {
  EXPECT_ERROR(clamp(x, 2, 1), UserError, "clamp: the lower bound 2 is above the upper bound 1");
  EXPECT_ERROR(hardtanh(x, 1, -1), UserError,
               "hardtanh: the lower bound 1 is above the upper bound -1");
}

TEST_F(PointwiseErrors, glu_of_odd_axis) {
  EXPECT_ERROR(glu(x), ShapeError, "glu: axis -1 of [4,3] cannot be halved");
}

TEST_F(PointwiseErrors, prelu_weight_size_differs) {
  EXPECT_ERROR(prelu(x, ones({4})), ShapeError,
               "prelu: weight must be [1] or match axis 1 of x [4,3], got [4]");
}

TEST_F(PointwiseErrors, where_condition_of_floats) {
  EXPECT_ERROR(where(x, 1.0, 0.0), DtypeError, "where: the condition must be bool, got f32");
}

}  // namespace tensorgrad::testing
