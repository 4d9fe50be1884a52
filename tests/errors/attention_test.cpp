// SPDX-License-Identifier: MIT
// Mistakes with attention and rotary embeddings.
#include "errors/example.h"

namespace tensorgrad::testing {

using AttentionErrors = Traced;

TEST_F(AttentionErrors, heads_do_not_divide) {
  EXPECT_ERROR(
      scaled_dot_product_attention(zeros({3, 4, 2}), zeros({2, 4, 2}), zeros({2, 4, 2}),
                                   {.enable_gqa = true}),
      ShapeError,
      "scaled_dot_product_attention: 3 heads of q are not a multiple of the 2 heads of k and v");
  EXPECT_ERROR(
      nn::MultiheadAttention(8, 3)(x), ShapeError,
      "MultiheadAttention: size must be a multiple of heads and heads of kv_heads, got 8, 3 and 3");
}

TEST_F(AttentionErrors, widths_differ) {
  EXPECT_ERROR(scaled_dot_product_attention(x, y, y), ShapeError,
               "scaled_dot_product_attention: expected q [.., T, D], k [.., S, D], v [.., S, E], "
               "got q [4,3], k [4,2], v [4,2]");
}

TEST_F(AttentionErrors, rope_too_few_positions) {
  EXPECT_ERROR(rope(y, {.position = zeros({2})}), ShapeError,
               "rope: positions must be [4] or [], got [2]");
}

TEST_F(AttentionErrors, rope_width_odd) {
  EXPECT_ERROR(rope(x), ShapeError, "rope: expected x [..., T, D] with even D, got [4,3]");
}

}  // namespace tensorgrad::testing
