// SPDX-License-Identifier: MIT
// Mistakes with random ops.
#include "errors/example.h"

namespace tensorgrad::testing {

using RandomErrors = Traced;

TEST_F(RandomErrors, parameter_out_of_range) {
  EXPECT_ERROR(bernoulli({2}, 1.5), UserError,
               "bernoulli: the probability must be in [0, 1], got 1.5");
  EXPECT_ERROR(dropout(x, 1.5), UserError, "dropout: the probability must be in [0, 1], got 1.5");
  EXPECT_ERROR(exponential({2}, 0), UserError, "exponential: expected a rate above 0, got 0");
  EXPECT_ERROR(gumbel_softmax(x, 0), UserError, "gumbel_softmax: tau must be more than 0, got 0");
  EXPECT_ERROR(normal({2}, 0, -1), UserError,
               "normal: expected a standard deviation of at least 0, got -1");
}

TEST_F(RandomErrors, too_few_axes) {
  EXPECT_ERROR(categorical(sum(x)), ShapeError, "categorical: axis -1 is out of range for []");
  EXPECT_ERROR(multinomial(zeros({}), 3), ShapeError,
               "multinomial: expected weights [..., C] and at least one draw, got [] and 3");
  EXPECT_ERROR(dropout2d(x, 0.5), ShapeError, "dropout2d: expected 4 axes, got [4,3]");
}

TEST_F(RandomErrors, sample_tokens_of_other_shapes) {
  const Tensor logits = zeros({2, 9});
  const std::string expected =
      "sample_tokens: expected logits [..., V] with V of at most 16777216, uniform [...] and "
      "controls [..., 5], got ";
  EXPECT_ERROR(sample_tokens(zeros({}), zeros({}), zeros({5})), ShapeError,
               expected + "[], [] and [5]");
  EXPECT_ERROR(sample_tokens(logits, zeros({3}), zeros({2, 5})), ShapeError,
               expected + "[2,9], [3] and [2,5]");
  EXPECT_ERROR(sample_tokens(logits, zeros({2}), zeros({2, 4})), ShapeError,
               expected + "[2,9], [2] and [2,4]");
  EXPECT_ERROR(sample_tokens(logits, zeros({2}, i32), zeros({2, 5})), DtypeError,
               "sample_tokens: expected f32, got i32[2]");
}

TEST_F(RandomErrors, multinomial_more_draws_than_classes) {
  EXPECT_ERROR(multinomial(ones({2, 3}), 4), ShapeError,
               "multinomial: cannot draw 4 without replacement from [2,3]");
}

TEST_F(RandomErrors, range_empty) {
  EXPECT_ERROR(randint({2}, 3, 3), UserError,
               "randint: expected i32 numbers lo < hi less than 2^31 apart, got 3 and 3");
  EXPECT_ERROR(uniform({2}, 2, 1), UserError,
               "uniform: expected finite floats lo < hi, got 2 and 1");
}

}  // namespace tensorgrad::testing
