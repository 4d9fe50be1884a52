// SPDX-License-Identifier: MIT
// Matrix products with operands of many layouts; gather, scatter and pack.
#include "op_cases.h"
#include "ops/registry.h"

namespace tensorgrad::testing {
namespace {

using T = const std::vector<Tensor>&;

Tensor pack(const std::vector<Tensor>& parts, const std::vector<std::int64_t>& offsets,
            std::int64_t size) {
  OpContext ctx("pack", Loc::current());
  std::vector<Expr> inputs;
  for (const Tensor& part : parts) inputs.push_back(ctx.in(part));
  return ctx.out(op::apply(ctx.builder, ops::pack, inputs, {{"offsets", offsets}, {"size", size}}));
}

}  // namespace

std::vector<OpCase> matmul_cases() {
  return {
      {"matmul", {{{5, 7}}, {{7, 3}}}, [](T t) { return matmul(t[0], t[1]); }},
      {"matmul_row", {{{1, 7}}, {{7, 3}}}, [](T t) { return matmul(t[0], t[1]); }},
      {"matmul_column", {{{5, 7}}, {{7, 1}}}, [](T t) { return matmul(t[0], t[1]); }},
      {"matmul_outer", {{{5, 1}}, {{1, 4}}}, [](T t) { return matmul(t[0], t[1]); }},
      {"matmul_one", {{{1, 1}}, {{1, 1}}}, [](T t) { return matmul(t[0], t[1]); }},
      {"matmul_at", {{{7, 5}}, {{7, 3}}}, [](T t) { return matmul(transpose(t[0]), t[1]); }},
      {"matmul_bt", {{{5, 7}}, {{3, 7}}}, [](T t) { return matmul(t[0], transpose(t[1])); }},
      {"matmul_at_bt",
       {{{7, 5}}, {{3, 7}}},
       [](T t) { return matmul(transpose(t[0]), transpose(t[1])); }},
      {"matmul_transposed",
       {{{5, 7}}, {{7, 3}}},
       [](T t) { return transpose(matmul(t[0], t[1])); }},
      {"matmul_batch", {{{2, 3, 4, 5}}, {{2, 3, 5, 2}}}, [](T t) { return matmul(t[0], t[1]); }},
      {"matmul_broadcast_batch",
       {{{2, 1, 4, 5}}, {{3, 5, 2}}},
       [](T t) { return matmul(t[0], t[1]); }},
      {"matmul_broadcast_left", {{{4, 5}}, {{3, 5, 2}}}, [](T t) { return matmul(t[0], t[1]); }},
      {"matmul_rows_flattened", {{{2, 3, 5}}, {{5, 4}}}, [](T t) { return matmul(t[0], t[1]); }},
      {"matmul_heads",
       {{{2, 3, 2, 4}}, {{2, 3, 2, 4}}},  // [b, t, h, d], as attention reads it
       [](T t) { return matmul(permute(t[0], {0, 2, 1, 3}), permute(t[1], {0, 2, 3, 1})); }},
      {"matmul_sliced",
       {{{5, 9}}, {{9, 4}}},
       [](T t) { return matmul(narrow(t[0], 1, 2, 5), narrow(t[1], 0, 1, 5)); }},
      {"matmul_flipped",
       {{{5, 4}}, {{4, 3}}},
       [](T t) { return matmul(flip(t[0], 1), flip(t[1], 0)); }},
      {"matmul_padded", {{{3, 4}}, {{6, 3}}}, [](T t) { return matmul(pad(t[0], {1, 1}), t[1]); }},
      {"matmul_broadcast_row",
       {{{1, 4}}, {{4, 3}}},
       [](T t) { return matmul(broadcast_to(t[0], {5, 4}), t[1]); }},
      {"matmul_prologue",
       {{{5, 7}}, {{7, 3}}},
       [](T t) { return matmul(exp(t[0]), t[1] * 0.5 + 1.0); }},
      {"matmul_epilogue",
       {{{5, 7}}, {{7, 3}}, {{3}}, {{5, 3}}},
       [](T t) { return tanh(matmul(t[0], t[1]) + t[2]) * t[3]; }},
      {"matmul_of_concat",
       {{{5, 3}}, {{5, 2}}, {{5, 4}}},
       [](T t) { return matmul(concat({t[0], t[1]}, 1), t[2]); }},
      {"matmul_squared", {{{4, 4}}}, [](T t) { return matmul(t[0], t[0]); }},
      {"matmul_chain",
       {{{3, 4}}, {{4, 5}}, {{5, 2}}},
       [](T t) { return matmul(matmul(t[0], t[1]), t[2]); }},
      {"matmul_odd",
       {{{33, 65}, -1, 1}, {{65, 17}, -1, 1}},
       [](T t) { return matmul(t[0], t[1]); },
       false},
      {"matmul_tall",
       {{{130, 3}, -1, 1}, {{3, 140}, -1, 1}},
       [](T t) { return matmul(t[0], t[1]); },
       false},
      {"matmul_deep",
       {{{2, 700}, -1, 1}, {{700, 3}, -1, 1}},
       [](T t) { return matmul(t[0], t[1]); },
       false},
  };
}

std::vector<OpCase> index_cases() {
  const auto at = [](const Shape& shape, const Values& values, DType dtype = i32) {
    return Argument{shape, 0, 0, dtype, values};
  };
  return {
      {"gather_0",
       {{{4, 3}}, at({2, 3}, {3, 0, 1, 3, 3, 0})},
       [](T t) { return gather(t[0], 0, t[1]); }},
      {"gather_1",
       {{{2, 5}}, at({2, 3}, {4, 4, 0, 1, 2, 2})},
       [](T t) { return gather(t[0], 1, t[1]); }},
      {"gather_middle",
       {{{2, 3, 2}}, at({2, 2, 2}, {0, 1, 2, 2, 1, 1, 0, 2})},
       [](T t) { return gather(t[0], 1, t[1]); }},
      {"gather_u32",
       {{{2, 5}}, at({2, 2}, {4, 0, 4294967295.0, 2}, u32)},
       [](T t) { return gather(t[0], 1, t[1]); }},
      {"gather_out_of_range",
       {{{2, 3}}, at({2, 4}, {-1, 0, 3, 2, 2147483647.0, -2147483648.0, 1, 1})},
       [](T t) { return gather(t[0], 1, t[1]); }},
      {"gather_one_of_each",
       {{{3, 4}}, at({3, 1}, {2, -1, 0})},
       [](T t) { return gather(t[0], 1, t[1]); }},
      {"gather_of_exp",
       {{{3, 4}}, at({3, 2}, {2, 1, 0, 0, 3, 3})},
       [](T t) { return gather(exp(t[0]), 1, t[1]); }},
      {"gather_of_transposed",
       {{{4, 3}}, at({3, 2}, {2, 1, 0, 0, 3, 3})},
       [](T t) { return gather(transpose(t[0]), 1, t[1]); }},
      {"gather_by_computed",
       {{{5}}, at({3}, {0, 1, 2})},
       [](T t) { return gather(t[0], 0, t[1] * 2 - 1); }},
      {"gather_i32",
       {{{5}, -99, 99, i32}, at({3}, {4, 1, 9})},
       [](T t) { return gather(t[0], 0, t[1]); },
       false},
      {"embedding",
       {{{6, 3}}, at({2, 4}, {5, 0, 0, 1, 2, 5, 5, 3})},
       [](T t) { return embedding(t[1], t[0]); }},
      {"scatter_add_0",
       {{{4, 3}}, at({2, 3}, {3, 0, 1, 3, 3, 0}), {{2, 3}}},
       [](T t) { return scatter_add(t[0], 0, t[1], t[2]); }},
      {"scatter_add_1",
       {{{2, 5}}, at({2, 3}, {4, 4, 0, 1, 2, 2}), {{2, 3}}},
       [](T t) { return scatter_add(t[0], 1, t[1], t[2]); }},
      {"scatter_add_out_of_range",
       {{{2, 3}}, at({2, 4}, {-1, 0, 3, 2, 9, 1, 1, 1}), {{2, 4}}},
       [](T t) { return scatter_add(t[0], 1, t[1], t[2]); }},
      {"scatter_add_u32",
       {{{3}}, at({4}, {2, 2, 4294967295.0, 0}, u32), {{4}}},
       [](T t) { return scatter_add(t[0], 0, t[1], t[2]); }},
      {"scatter_add_same_place",
       {{{3}}, at({6}, {1, 1, 1, 1, 1, 1}), {{6}}},
       [](T t) { return tanh(scatter_add(t[0], 0, t[1], exp(t[2])) * 0.1); }},
      {"scatter_of_gather",
       {{{4}}, at({5}, {3, 0, 3, 1, 1})},
       [](T t) { return scatter_add(t[0], 0, t[1], square(gather(t[0], 0, t[1]))); }},
      {"index_update",
       {{{5, 3}}, at({}, {1}), {{2, 3}}},
       [](T t) { return index_update(t[0], 0, t[1], t[2]); }},
      {"index_update_of_one",
       {{{2, 5, 3}}, at({}, {4}), {{2, 1, 3}}},
       [](T t) { return index_update(t[0], 1, t[1], t[2]); }},
      {"index_update_of_sequences",
       {{{2, 3, 6, 4}}, at({2, 1, 1, 1}, {2, 5}), {{2, 3, 2, 4}}},
       [](T t) { return index_update(t[0], 2, t[1], t[2]); }},
      {"index_update_of_lines",
       {{{6, 5}}, at({6, 1}, {-3, -2, -1, 0, 4, 5}), {{6, 2}}},
       [](T t) { return index_update(t[0], -1, t[1], t[2]); }},
      {"index_update_far_away",
       {{{4, 2}}, at({1, 2}, {-2147483648.0, 2147483647}), {{3, 2}}},
       [](T t) { return index_update(t[0], 0, t[1], t[2]); }},
      {"index_update_u32",
       {{{4, 3}}, at({3}, {3, 2147483648.0, 4294967295.0}, u32), {{2, 3}}},
       [](T t) { return index_update(t[0], 0, t[1], t[2]); }},
      {"index_update_of_all",
       {{{3, 4}}, at({}, {0}), {{3, 4}}},
       [](T t) { return index_update(t[0], 0, t[1], t[2]) * t[0]; }},
      {"index_update_by_more",
       {{{3, 2}}, at({}, {-1}), {{5, 2}}},
       [](T t) { return index_update(t[0], 0, t[1], t[2]); }},
      {"index_update_of_views",
       {{{3, 5}}, at({}, {1}), {{3, 2}}},
       [](T t) { return index_update(transpose(flip(t[0], 0)), 0, t[1], transpose(t[2])); }},
      {"index_update_of_computed",
       {{{5, 3}}, at({}, {1}), {{2, 3}}},
       [](T t) { return tanh(index_update(exp(t[0]), 0, t[1] * 2 - 1, sin(t[2]) * t[2]) * 0.3); }},
      {"index_update_of_its_own_operand",
       {{{4, 3}}, at({}, {2})},
       [](T t) {
         const Tensor x = sin(t[0]);
         return index_update(x, 0, t[1], x * 2) + index_update(x * 3, 0, t[1], narrow(x, 0, 1, 2));
       }},
      {"index_update_twice",
       {{{5, 3}}, at({}, {1}), {{2, 3}}},
       [](T t) {
         return index_update(index_update(t[0], 0, t[1], t[2]), 0, t[1] + 1, square(t[2]));
       }},
      {"index_update_of_zeros",
       {{{2, 3}}, at({}, {3})},
       [](T t) { return index_update(zeros({6, 3}, t[0].dtype()), 0, t[1], t[0]) * 2; }},
      {"pack", {{{3}}, {{2, 2}}}, [](T t) { return pack({exp(t[0]), t[1]}, {0, 64}, 128); }},
  };
}

}  // namespace tensorgrad::testing
