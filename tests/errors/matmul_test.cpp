// SPDX-License-Identifier: MIT
// Mistakes with products of matrices.
#include "errors/example.h"

namespace tensorgrad::testing {

using MatmulErrors = Traced;

TEST_F(MatmulErrors, inner_sizes_differ) {
  EXPECT_ERROR(matmul(x, y), ShapeError, "matmul: inner sizes differ: a [4,3], b [4,2]");
  EXPECT_ERROR(matmul(zeros({4}), zeros({3, 2})), ShapeError,
               "matmul: inner sizes differ: a [4], b [3,2]");
}

TEST_F(MatmulErrors, batch_sizes_do_not_broadcast) {
  EXPECT_ERROR(matmul(zeros({2, 4, 3}), zeros({5, 3, 4})), ShapeError,
               "matmul: shapes do not broadcast: a [2], b [5]");
}

TEST_F(MatmulErrors, scalar_operand) {
  EXPECT_ERROR(matmul(zeros({}), zeros({3, 2})), ShapeError,
               "matmul: expected at least one axis, got a [], b [3,2]");
}

TEST_F(MatmulErrors, operand_types_unsupported) {
  EXPECT_ERROR(matmul(x > 0, transpose(x > 0)), DtypeError,
               "matmul: expected f32, or both i32 or both u32, got bool[4,3] and bool[3,4]");
  EXPECT_ERROR(matmul(reshape(i, {2, 2}), iota({2, 2}, 1, u32)), DtypeError,
               "matmul: expected f32, or both i32 or both u32, got i32[2,2] and u32[2,2]");
}

TEST_F(MatmulErrors, linear_bias_size_differs) {
  EXPECT_ERROR(linear(x, zeros({2, 3}), zeros({3})), ShapeError,
               "linear: bias must be [2] for weight [2,3], got [3]");
}

TEST_F(MatmulErrors, dot_or_tensordot_sizes_differ) {
  EXPECT_ERROR(dot(zeros({3}), zeros({2})), ShapeError, "dot: sizes differ: a [3], b [2]");
  EXPECT_ERROR(tensordot(x, y, {1}, {1}), ShapeError,
               "tensordot: axis 1 of a [4,3] and axis 1 of b [4,2] differ in size");
}

TEST_F(MatmulErrors, outer_of_matrices) {
  EXPECT_ERROR(outer(x, y), ShapeError, "outer: expected two vectors, got a [4,3], b [4,2]");
}

using EinsumErrors = Traced;

TEST_F(EinsumErrors, sizes_differ) {
  EXPECT_ERROR(einsum("ij,kj", {x, y}), ShapeError, "einsum: 'j' has sizes 3 and 2");
}

TEST_F(EinsumErrors, formula_with_digit) {
  EXPECT_ERROR(einsum("i1->i", {x}), ShapeError,
               "einsum: the formula 'i1->i' contains the invalid character '1'");
}

TEST_F(EinsumErrors, operand_missing_in_formula) {
  EXPECT_ERROR(einsum("ij", {x, y}), ShapeError,
               "einsum: the formula 'ij' has fewer operands than were passed");
}

TEST_F(EinsumErrors, result_letter_unknown) {
  EXPECT_ERROR(einsum("ij->ik", {x}), ShapeError,
               "einsum: the formula 'ij->ik' has a letter in its result that no operand has");
}

TEST_F(EinsumErrors, too_few_letters) {
  EXPECT_ERROR(einsum("i,ij", {x, y}), ShapeError,
               "einsum: the formula 'i,ij' does not match an operand with 2 axes");
}

}  // namespace tensorgrad::testing
