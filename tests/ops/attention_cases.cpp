// SPDX-License-Identifier: MIT
// Attention: sizes below, at and above those of a tile, masks, grouped heads, extreme scores.

#include "op_cases.h"

namespace tensorgrad::testing {
namespace {

using T = const std::vector<Tensor>&;

std::vector<Argument> qkv(const Shape& lead, std::int64_t rows, std::int64_t columns,
                          std::int64_t depth, std::int64_t width) {
  const auto with = [&](std::int64_t length, std::int64_t size) {
    Shape shape = lead;
    shape.insert(shape.end(), {length, size});
    return Argument{shape, -1, 1};
  };
  return {with(rows, depth), with(columns, depth), with(columns, width)};
}

std::vector<Argument> with(std::vector<Argument> some, const Argument& more) {
  some.push_back(more);
  return some;
}

Tensor plain(T t) { return scaled_dot_product_attention(t[0], t[1], t[2]); }
Tensor causal(T t) {
  return scaled_dot_product_attention(t[0], t[1], t[2], {.causal = true, .scale = 0.7});
}
Tensor masked(T t) { return scaled_dot_product_attention(t[0], t[1], t[2], {.mask = t[3]}); }
Tensor grouped(T t) {
  return scaled_dot_product_attention(t[0], t[1], t[2], {.causal = true, .enable_gqa = true});
}
Tensor grouped_and_masked(T t) {
  return scaled_dot_product_attention(t[0], t[1], t[2], {.mask = t[3], .enable_gqa = true});
}

// Returns the output and its gradients, each summed over the last axis, to cover all backward
// launches.
Tensor both_ways(T t) {
  const Tensor o = causal(t);
  const std::vector<Tensor> d = grad(sum(o * o), {t[0], t[1], t[2]});
  return concat({sum(o, -1), sum(d[0], -1), sum(d[1], -1), sum(d[2], -1)}, 1);
}

// As both_ways, with more heads and keys than differences could be taken for: they follow from a
// few values.
template <std::int64_t heads, std::int64_t keys>
Tensor over_keys(T t) {
  const Tensor place = iota({heads, keys, 2}, 1, f32) * (1.0 / keys);
  const Tensor head = iota({heads, 2, 2}, 0, f32) * (1.0 / heads);
  const Tensor o = scaled_dot_product_attention(t[0] * (1.0 + head), t[1] * (3.0 * place),
                                                t[2] * (1.0 + square(place)));
  std::vector<Tensor> sums = {sum(o, {0, 2})};
  for (const Tensor& d : grad(sum(o * o), {t[0], t[1], t[2]}))
    sums.push_back(cast(sum(d, {0, 2}), f32));
  return concat(sums, 0);
}

std::vector<OpCase> sizes() {
  struct Size {
    std::int64_t batch, rows, columns, depth, width;
  };
  std::vector<OpCase> cases;
  for (const Size& s : {Size{1, 1, 1, 1, 1},
                        {3, 1, 70, 5, 3},
                        {2, 17, 33, 6, 10},
                        {1, 63, 65, 16, 4},
                        {2, 70, 150, 32, 32},
                        {1, 150, 40, 64, 64},
                        {1, 20, 24, 128, 128},
                        {1, 12, 9, 130, 7}}) {
    const std::string name = std::to_string(s.batch) + "x" + std::to_string(s.rows) + "x" +
                             std::to_string(s.columns) + "x" + std::to_string(s.depth) + "x" +
                             std::to_string(s.width);
    const std::vector<Argument> args = qkv({s.batch}, s.rows, s.columns, s.depth, s.width);
    // Differences of large cases would take minutes, and second gradients are also computed for
    // these.
    const bool small = s.rows * s.columns <= 600;
    cases.push_back({"attention_" + name, args, plain, small});
    if (small) {
      if (s.rows > 1) cases.push_back({"attention_causal_" + name, args, causal});
    } else {
      cases.push_back({"attention_causal_both_ways_" + name, args, both_ways, false});
    }
  }
  return cases;
}

std::vector<OpCase> forms() {
  const std::vector<Argument> small = qkv({2}, 3, 5, 4, 2);
  const Argument booleans = {{3, 5}, 0, 1, boolean, {1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1}};
  const Argument added = {
      {2, 3, 5}, 0, 0, f32, {0,   1,    -kInf, 2,     -1, -kInf, -kInf, -kInf, -kInf, -kInf,
                             0.5, 0.25, 3,     -kInf, -1, -kInf, 7,     0,     0,     0,
                             -50, 50,   0,     0,     0,  1,     2,     3,     4,     5}};
  const std::vector<Argument> few = qkv({1}, 2, 1, 2, 2);
  std::vector<Argument> far = small;
  for (Argument& each : far) each.lo = -60, each.hi = 60;
  std::vector<Argument> heads = qkv({2, 4}, 3, 5, 2, 2);
  heads[1].shape[1] = heads[2].shape[1] = 2;
  std::vector<Argument> spread = qkv({2, 3}, 4, 5, 2, 2);
  spread[1].shape = {5, 2};
  spread[2].shape = {3, 5, 2};
  return {
      {"attention", small, plain},
      {"attention_causal", small, causal},
      {"attention_masked", with(small, booleans), masked},
      {"attention_biased", with(small, {{3, 5}}), masked},
      {"attention_biased_by_row", with(small, {{2, 1, 5}}), masked},
      {"attention_added", with(small, added), masked, false},
      {"attention_with_its_gradients", qkv({1}, 3, 3, 2, 2), both_ways},
      {"attention_of_few_heads_with_its_gradients", few, over_keys<2, 70>},
      {"attention_of_many_heads_with_its_gradients", few, over_keys<130, 200>},
      {"attention_of_far_scores", far, plain, false},
      {"attention_grouped", heads, grouped},
      {"attention_grouped_masked", with(heads, booleans), grouped_and_masked},
      {"attention_grouped_biased", with(heads, {{2, 4, 3, 5}}), grouped_and_masked},
      {"attention_broadcast", spread, plain},
      {"attention_of_matrices", qkv({}, 4, 3, 2, 5), plain},
      {"attention_of_heads_in_place",
       {{{2, 5, 3, 4}}, {{2, 5, 3, 4}}, {{2, 5, 3, 4}}},
       [](T t) {
         const auto of_heads = [](Tensor x) { return permute(x, {0, 2, 1, 3}); };
         const Tensor o = scaled_dot_product_attention(of_heads(t[0]), of_heads(t[1] * 0.5),
                                                       of_heads(t[2]), {.causal = true});
         return permute(o, {0, 2, 1, 3});
       }},
      {"attention_of_transposed",
       {{{2, 4, 5}}, {{2, 4, 5}}, {{2, 5, 4}}},
       [](T t) {
         return scaled_dot_product_attention(transpose(t[0]), transpose(t[1]), flip(t[2], 1));
       }},
      {"attention_to_documents",
       {{{1, 8, 3}}, {{1, 8, 3}}, {{1, 8, 3}}, {{1, 8}, 0, 0, i32, {0, 0, 0, 1, 1, 2, 2, 2}}},
       [](T t) {
         return scaled_dot_product_attention(
             t[0], t[1], t[2],
             {.mask = eq(unsqueeze(t[3], 2), unsqueeze(t[3], 1)), .causal = true});
       }},
      {"attention_with_slopes",
       {{{2, 6, 3}}, {{2, 6, 3}}, {{2, 6, 3}}, {{2, 1, 1}, 0.1, 1}},
       [](T t) {
         const Tensor distance = iota({6, 6}, 0, f32) - iota({6, 6}, 1, f32);
         return scaled_dot_product_attention(t[0], t[1], t[2],
                                             {.mask = -t[3] * distance, .causal = true});
       }},
      {"rope", {{{2, 5, 6}}}, [](T t) { return rope(t[0]); }},
      {"rope_interleaved",
       {{{2, 5, 6}}},
       [](T t) {
         return rope(t[0], {.base = 100, .pairs = RopePairs::kInterleaved, .offset = 3});
       }},
      {"rope_at_position",
       {{{5, 4}}, {{}, 0, 9}},
       [](T t) { return rope(t[0], {.position = detach(t[1])}) + 0.0 * t[1]; },
       false},
      {"rope_at_positions",
       {{{5, 4}}, {{5}, 0, 9}},
       [](T t) { return rope(t[0], {.position = t[1]}); }},
      {"causal_mask", {{{3, 5}}}, [](T t) { return where(causal_mask(3, 5), t[0], 0.0); }},
  };
}

}  // namespace

std::vector<OpCase> attention_cases() {
  std::vector<OpCase> cases = sizes();
  for (const OpCase& each : forms()) cases.push_back(each);
  return cases;
}

}  // namespace tensorgrad::testing
