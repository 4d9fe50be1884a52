// SPDX-License-Identifier: MIT
// Scans, sorting and the reductions built on them: axes, layouts, lengths, ties, NaN.
#include <numeric>

#include "op_cases.h"

namespace tensorgrad::testing {
namespace {

using T = const std::vector<Tensor>&;

// Rows of 6 with ties, zeros of both signs, infinities and NaNs.
const Argument kOdd = {
    {5, 6}, 0, 0, f32, {1, 2,    2,     1,     kNan,  3,     kNan,  1,     kNan, -kInf,
                        0, -0.0, -kInf, -kInf, -kInf, -kInf, -kInf, -kInf, 0,    -0.0,
                        0, -0.0, 1,     -1,    kInf,  kInf,  -kInf, 5,     kInf, -kInf}};
const Argument kTies = {{2, 7}, 0, 0, f32, {3, 1, 3, 2, 1, 3, 2, 5, 5, 5, 5, 5, 5, 5}};
const Argument kWhole = {
    {2, 7}, 0, 0, i32, {3, -1, 3, 2, -1, 0, 2147483647.0, -2147483648.0, 5, 5, 7, 5, -9, 7}};
const Argument kWords = {{2, 7}, 0, 0, u32, {3, 1, 3, 2, 1, 0, 4294967295.0, 9, 5, 5, 7, 5, 0, 7}};
const Argument kZeros = {{3, 5}, 0, 0, f32, {1, 2, 0, 3, 4, 0, 2, 0, 3, 4, 1, 2, 3, 4, 0.5}};

void add(std::vector<OpCase>& to, const std::vector<OpCase>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::vector<OpCase> scans() {
  std::vector<OpCase> cases;
  const Shape shape = {3, 4, 2, 5};
  for (int d = 0; d < 4; ++d) {
    const std::string name = std::to_string(d);
    Shape line = shape;
    line[static_cast<std::size_t>(d)] = 1;
    add(cases, {{"cumsum_" + name, {{shape}}, [d](T t) { return cumsum(t[0], d); }},
                {"cumprod_" + name, {{shape}}, [d](T t) { return cumprod(t[0], d); }},
                {"logcumsumexp_" + name, {{shape}}, [d](T t) { return logcumsumexp(t[0], d); }},
                {"cummax_" + name, {{shape}}, [d](T t) { return cummax(t[0], d).values; }},
                {"cummin_" + name, {{shape}}, [d](T t) { return cummin(t[0], d).values; }},
                {"linear_recurrence_" + name,
                 {{shape}, {shape}},
                 [d](T t) { return linear_recurrence(t[0], t[1], d); }},
                {"linear_recurrence_reverse_" + name,
                 {{shape}, {shape}, {line}},
                 [d](T t) { return linear_recurrence(t[0], t[1], d, t[2], true); }},
                {"linear_recurrence_from_" + name, {{shape}, {shape}, {line}}, [d](T t) {
                   return linear_recurrence(t[0], t[1], d - 4, t[2]);
                 }}});
  }
  add(cases,
      {{"cumsum_i32", {kWhole}, [](T t) { return cumsum(t[0], 1); }, false},
       {"cumsum_u32_0", {kWords}, [](T t) { return cumsum(t[0], 0); }, false},
       {"cumsum_of_one", {{{3, 1}}}, [](T t) { return cumsum(t[0], 1); }},
       {"cumprod_of_one", {{{3, 1}}}, [](T t) { return cumprod(t[0], 1); }},
       {"linear_recurrence_of_one",
        {{{3, 1}}, {{3, 1}}, {{3, 1}}},
        [](T t) { return linear_recurrence(t[0], t[1], 1, t[2]); }},
       {"cumprod_long", {{{3, 2500}, 0.996, 1.004}}, [](T t) { return cumprod(t[0], 1); }, false},
       {"cumprod_long_0", {{{700, 9}, 0.99, 1.01}}, [](T t) { return cumprod(t[0], 0); }, false},
       {"cumprod_of_zeros", {kZeros}, [](T t) { return cumprod(t[0], 1); }, false},
       {"cumsum_between",
        {{{4, 6}}, {{4, 6}}},
        [](T t) { return exp(cumsum(t[0] * t[1], 1) * 0.2); }},
       {"cumsum_of_views",
        {{{6, 4}}},
        [](T t) { return flip(cumsum(flip(transpose(t[0]), 1), 1), 0); }},
       {"cumsum_of_pad", {{{3, 4}}}, [](T t) { return cumsum(pad(exp(t[0]), {1, 2}, 0.5), 1); }},
       {"cumsum_of_broadcast",
        {{{3, 1}}},
        [](T t) { return cumsum(broadcast_to(t[0], {2, 3, 4}), 2); }},
       {"cumsum_of_cumsum", {{{4, 5}}}, [](T t) { return cumsum(cumsum(t[0], 0), 1); }},
       {"cumsum_then_sum", {{{4, 5}}}, [](T t) { return sum(tanh(cumsum(t[0], 1)), 1); }},
       {"recurrence_of_gates",
        {{{2, 6, 3}}, {{2, 6, 3}}},
        [](T t) {
          const Tensor gate = sigmoid(t[0]);
          return tanh(linear_recurrence(gate, (1.0 - gate) * t[1], 1)) * t[0];
        }},
       {"cummax_odd", {kOdd}, [](T t) { return cummax(t[0], 1).values; }, false, true},
       {"cummax_odd_places", {kOdd}, [](T t) { return cummax(t[0], 1).indices; }, false, true},
       {"cummin_odd_places", {kOdd}, [](T t) { return cummin(t[0], 1).indices; }, false, true},
       {"cummax_odd_places_0", {kOdd}, [](T t) { return cummax(t[0], 0).indices; }, false, true},
       {"cummin_ties", {kTies}, [](T t) { return cummin(t[0], 1).indices; }, false},
       {"cummax_i32", {kWhole}, [](T t) { return cummax(t[0], 1).indices; }, false},
       {"cummin_u32", {kWords}, [](T t) { return cummin(t[0], -1).values; }, false},
       {"logcumsumexp_far",
        {{{2, 5}, 0, 0, f32, {-kInf, -kInf, -200, 1, 200, -1000, -1e30, 3, kInf, 1}}},
        [](T t) { return logcumsumexp(t[0], 1); },
        false,
        true},
       {"logcumsumexp_nan",
        {{{2, 4}, 0, 0, f32, {1, kNan, 2, kInf, kInf, 1, -kInf, 2}}},
        [](T t) { return logcumsumexp(t[0], 1); },
        false,
        true}});
  // Long enough for blocks, chunks and many lanes.
  for (const Shape& long_one : {Shape{1, 100000}, {3, 2500}, {70000, 2}, {40, 300}, {2000, 7}}) {
    const int axis = long_one[0] > long_one[1] ? 0 : 1;
    const std::string name = std::to_string(long_one[0]) + "x" + std::to_string(long_one[1]);
    const double top = 2.0 / static_cast<double>(long_one[static_cast<std::size_t>(axis)]);
    add(cases, {{"cumsum_long_" + name,
                 {{long_one, 0, top}},
                 [axis](T t) { return cumsum(t[0], axis); },
                 false},
                {"cummax_long_" + name,
                 {{long_one}},
                 [axis](T t) { return cummax(t[0], axis).indices; },
                 false},
                {"linear_recurrence_long_" + name,
                 {{long_one, -1, 1}, {long_one, -1, 1}},
                 [axis](T t) { return linear_recurrence(t[0], t[1], axis, std::nullopt, true); },
                 false}});
  }
  return cases;
}

std::vector<OpCase> sorts() {
  std::vector<OpCase> cases;
  const Shape shape = {3, 4, 2, 5};
  for (int d = 0; d < 4; ++d) {
    const std::string name = std::to_string(d);
    add(cases,
        {{"argsort_" + name, {{shape}}, [d](T t) { return argsort(t[0], d); }, false},
         {"sort_" + name, {{shape}}, [d](T t) { return sort(t[0], d).values; }},
         {"sort_down_" + name, {{shape}}, [d](T t) { return sort(t[0], d - 4, true).values; }},
         {"topk_" + name, {{shape}}, [d](T t) { return topk(t[0], 2, d).values; }},
         {"topk_down_" + name, {{shape}}, [d](T t) { return topk(t[0], 2, d, false).values; }}});
  }
  for (const bool down : {false, true}) {
    const std::string name = down ? "_down" : "_up";
    add(cases,
        {{"argsort_odd" + name,
          {kOdd},
          [down](T t) { return argsort(t[0], 1, down); },
          false,
          true},
         {"sort_odd" + name,
          {kOdd},
          [down](T t) { return sort(t[0], 1, down).values; },
          false,
          true},
         {"argsort_odd_0" + name,
          {kOdd},
          [down](T t) { return argsort(t[0], 0, down); },
          false,
          true},
         {"argsort_ties" + name, {kTies}, [down](T t) { return argsort(t[0], -1, down); }, false},
         {"argsort_i32" + name, {kWhole}, [down](T t) { return argsort(t[0], 1, down); }, false},
         {"argsort_u32" + name, {kWords}, [down](T t) { return argsort(t[0], 1, down); }, false},
         {"topk_odd" + name,
          {kOdd},
          [down](T t) { return topk(t[0], 6, 1, down).indices; },
          false,
          true},
         {"topk_ties" + name,
          {kTies},
          [down](T t) { return topk(t[0], 5, 1, down).indices; },
          false},
         {"topk_i32" + name,
          {kWhole},
          [down](T t) { return topk(t[0], 3, 1, down).indices; },
          false},
         {"topk_of_many" + name,
          {{{3, 40}}},
          [down](T t) { return topk(t[0], 20, 1, down).values; }},
         {"argsort_long_ties" + name,
          {{{2, 2100}, 0, 9, i32}},
          [down](T t) { return argsort(t[0], 1, down); },
          false},
         {"argsort_long" + name,
          {{{5000, 2}}},
          [down](T t) { return argsort(t[0] * 2.0, 0, down); },
          false}});
  }
  add(cases,
      {{"sort_of_one", {{{3, 1}}}, [](T t) { return sort(t[0], 1).values; }},
       {"topk_of_one", {{{3, 1}}}, [](T t) { return topk(t[0], 1, 1).values; }},
       {"sort_2048", {{{2, 2048}}}, [](T t) { return sort(t[0], 1).values; }, false},
       {"sort_of_exp", {{{4, 9}}}, [](T t) { return tanh(sort(exp(t[0]) * 0.3, 1).values); }},
       {"sort_of_transposed",
        {{{9, 4}}},
        [](T t) { return sort(flip(transpose(t[0]), 0), 1, true).values; }},
       {"sort_then_use", {{{4, 9}}}, [](T t) { return cumsum(sort(t[0], 1).values, 1) * 0.3; }},
       {"rank_by_two_sorts", {{{4, 9}}}, [](T t) { return argsort(argsort(t[0], 1), 1); }, false}});
  return cases;
}

std::vector<OpCase> reductions() {
  std::vector<OpCase> cases;
  const Shape shape = {3, 2, 4};
  for (const std::vector<int>& axes : {std::vector<int>{0}, {1}, {2}, {0, 2}, {-1, 1}, {}}) {
    std::string name = "_of";
    for (const int axis : axes) name += std::to_string(axis + 3);
    add(cases, {{"prod" + name, {{shape}}, [axes](T t) { return prod(t[0], axes); }},
                {"prod_kept" + name, {{shape}}, [axes](T t) { return prod(t[0], axes, true); }},
                {"std" + name, {{shape}}, [axes](T t) { return tensorgrad::std(t[0], axes); }},
                {"norm" + name, {{shape}}, [axes](T t) { return norm(t[0], 2, axes); }},
                {"norm_1" + name, {{shape}}, [axes](T t) { return norm(t[0], 1, axes, true); }},
                {"norm_3" + name, {{shape}}, [axes](T t) { return norm(t[0], 3, axes, true); }},
                {"norm_inf" + name, {{shape}}, [axes](T t) { return norm(t[0], kInf, axes); }}});
  }
  add(cases, {{"prod_of_zeros", {kZeros}, [](T t) { return prod(t[0], 1); }, false},
              {"prod_of_one", {{{3, 1}}}, [](T t) { return prod(t[0], 1); }},
              {"any", {kZeros}, [](T t) { return any(t[0] > 3.5, 1); }, false},
              {"any_of_all", {kZeros}, [](T t) { return any(t[0] > 9.0); }, false},
              {"any_odd", {kOdd}, [](T t) { return any(t[0], 1, true); }, false, true},
              {"all", {kZeros}, [](T t) { return all(t[0], 1); }, false},
              {"all_odd", {kOdd}, [](T t) { return all(t[0], 1); }, false, true},
              {"all_u32", {kWords}, [](T t) { return all(t[0], {0, 1}); }, false},
              {"count_nonzero", {kZeros}, [](T t) { return count_nonzero(t[0], 1); }, false},
              {"count_nonzero_odd", {kOdd}, [](T t) { return count_nonzero(t[0]); }, false, true},
              {"norm_odd", {kOdd}, [](T t) { return norm(t[0], kInf, 1); }, false, true}});
  return cases;
}

}  // namespace

std::vector<OpCase> scan_cases() {
  std::vector<OpCase> cases = scans();
  add(cases, sorts());
  add(cases, reductions());
  return cases;
}

}  // namespace tensorgrad::testing
