// SPDX-License-Identifier: MIT
// Mistakes with ops that change shapes.
#include <cstdint>

#include "errors/example.h"

namespace tensorgrad::testing {

using ShapeOpErrors = Traced;

TEST_F(ShapeOpErrors, reshape_impossible) {
  EXPECT_ERROR(reshape(x, {5, 2}), ShapeError,
               "reshape: cannot make [5,2] (10 elements) from [4,3] (12 elements)");
  EXPECT_ERROR(reshape(x, {-1, -1}), ShapeError, "reshape: cannot make [-1,-1] from [4,3]");
  EXPECT_ERROR(reshape(x, {1LL << 40, 1LL << 40}), ShapeError,
               "reshape: [1099511627776,1099511627776] has more than 2^31-1 elements, the limit of "
               "a tensor");
}

TEST_F(ShapeOpErrors, broadcast_to_smaller_shape) {
  EXPECT_ERROR(broadcast_to(x, {4, 1}), ShapeError,
               "broadcast_to: cannot broadcast [4,3] to [4,1]");
}

TEST_F(ShapeOpErrors, axis_repeated) {
  EXPECT_ERROR(permute(x, {0, 0}), ShapeError,
               "permute: axes [0,0] do not name each axis of [4,3] exactly once");
  EXPECT_ERROR(movedim(x, {0, 0}, {0, 1}), ShapeError, "movedim: an axis is repeated");
}

TEST_F(ShapeOpErrors, squeeze_axis_larger_than_one) {
  EXPECT_ERROR(squeeze(x, 0), ShapeError, "squeeze: axis 0 of [4,3] does not have size 1");
}

TEST_F(ShapeOpErrors, flatten_axes_reversed) {
  EXPECT_ERROR(flatten(x, 1, 0), ShapeError, "flatten: the first axis is after the last");
}

TEST_F(ShapeOpErrors, size_of_missing_axis) {
  EXPECT_ERROR(x.size(2), ShapeError, "size: axis 2 is out of range for [4,3]");
}

TEST_F(ShapeOpErrors, diagonal_missing) {
  EXPECT_ERROR(diagonal(x, 3), ShapeError, "diagonal: [4,3] has no diagonal 3");
}

TEST_F(ShapeOpErrors, repeat_too_few_counts) {
  EXPECT_ERROR(repeat(x, {2}), ShapeError, "repeat: expected one count per axis of [4,3], got 1");
}

TEST_F(ShapeOpErrors, roll_more_shifts_than_axes) {
  EXPECT_ERROR(roll(x, {1, 1}, {0}), ShapeError, "roll: 2 shifts for 1 axes");
}

TEST_F(ShapeOpErrors, unfold_window_too_large) {
  EXPECT_ERROR(unfold(zeros({4, 4}), 1, 3, 1, 2), ShapeError,
               "unfold: a window of 3 with dilation 2 does not fit axis 1 of [4,4]");
}

TEST_F(ShapeOpErrors, split_sizes_do_not_add_up) {
  EXPECT_ERROR(split(x, {2, 2}, 1)[0], ShapeError,
               "split: sizes summing to 4 do not match axis 1 of [4,3]");
}

TEST_F(ShapeOpErrors, narrow_outside_axis) {
  EXPECT_ERROR(narrow(x, 1, 2, 3), ShapeError,
               "narrow: start 2 and length 3 do not fit axis 1 of [4,3]");
  EXPECT_ERROR(narrow(x, 1, 1, 0), ShapeError,
               "narrow: start 1 and length 0 do not fit axis 1 of [4,3]");
  EXPECT_ERROR(narrow(x, 1, 1, INT64_MAX), ShapeError,
               "narrow: start 1 and length 9223372036854775807 do not fit axis 1 of [4,3]");
}

TEST_F(ShapeOpErrors, pad_amounts_invalid) {
  EXPECT_ERROR(pad(x, {-1, 0}), ShapeError, "pad: padding must not be negative");
  EXPECT_ERROR(pad(x, {INT64_MAX, INT64_MAX}), ShapeError, "pad: padding is above 2^31-1");
  EXPECT_ERROR(pad(x, {3, 0}, PadMode::kReflect), ShapeError,
               "pad: axis 1 of [4,3] has 2 elements to pad with, got 3");
  EXPECT_ERROR(pad(x, {1, 1, 1}), ShapeError,
               "pad: expected pairs of amounts for the last axes of [4,3], got 3 numbers");
}

TEST_F(ShapeOpErrors, concat_of_no_tensors) {
  EXPECT_ERROR(concat({}, 0), ShapeError, "concat: expected at least one tensor");
}

TEST_F(ShapeOpErrors, joined_shapes_differ) {
  EXPECT_ERROR(concat({x, y}, 0), ShapeError,
               "concat: parts differ on axes other than 0: [4,3] and [4,2]");
  EXPECT_ERROR(stack({x, y}), ShapeError,
               "stack: parts differ on axes other than 0: [1,4,3] and [1,4,2]");
}

TEST_F(ShapeOpErrors, concat_types_differ) {
  EXPECT_ERROR(concat({flatten(x), i}), DtypeError,
               "concat: parts have different types: f32[12] and i32[4]");
  EXPECT_ERROR(concat({cast(x, f16), x}, 0), DtypeError,
               "concat: parts have different types: f16[4,3] and f32[4,3]");
}

TEST_F(ShapeOpErrors, stack_axis_out_of_range) {
  EXPECT_ERROR(stack({x, x}, 3), ShapeError,
               "stack: a new axis of [4,3] must be between -3 and 2, got 3");
}

}  // namespace tensorgrad::testing
