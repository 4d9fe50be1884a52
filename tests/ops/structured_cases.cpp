// SPDX-License-Identifier: MIT
// Views, reductions and composites, in several shapes and layouts.
#include <cmath>

#include "op_cases.h"
#include "ops/pointwise.h"
#include "ops/registry.h"

namespace tensorgrad::testing {
namespace {

using T = const std::vector<Tensor>&;

std::string axes_name(const std::vector<int>& axes) {
  std::string name;
  for (const int axis : axes) name += std::to_string(axis);
  return name;
}

}  // namespace

std::vector<OpCase> view_cases() {
  return {
      {"reshape", {{{4, 6}}}, [](T t) { return reshape(t[0], {3, -1, 2}); }},
      {"reshape_of_permute", {{{4, 6}}}, [](T t) { return reshape(transpose(t[0]), {8, 3}); }},
      {"reshape_to_scalar", {{{1, 1}}}, [](T t) { return reshape(t[0], {}); }},
      {"permute", {{{2, 3, 4}}}, [](T t) { return permute(t[0], {2, 0, 1}); }},
      {"permute_twice",
       {{{2, 3, 4}}},
       [](T t) { return permute(permute(t[0], {2, 0, 1}), {1, 2, 0}); }},
      {"broadcast", {{{3, 1}}}, [](T t) { return broadcast_to(t[0], {2, 3, 4}); }},
      {"broadcast_scalar", {{{}}}, [](T t) { return broadcast_to(t[0], {2, 3}); }},
      {"broadcast_of_permute",
       {{{3, 1, 2}}},
       [](T t) { return broadcast_to(permute(t[0], {1, 2, 0}), {5, 2, 3}); }},
      {"slice", {{{5, 6}}}, [](T t) { return narrow(narrow(t[0], 0, 1, 3), 1, 2, 4); }},
      {"slice_of_reshape_of_permute",
       {{{4, 6}}},
       [](T t) { return narrow(reshape(transpose(t[0]), {2, 12}), 1, 5, 6); }},
      {"pad", {{{3, 4}}}, [](T t) { return pad(t[0], {1, 2, 0, 3}); }},
      {"pad_with_value", {{{3, 4}}}, [](T t) { return pad(t[0], {2, 1}, 7.5); }},
      {"pad_twice", {{{3, 2}}}, [](T t) { return pad(pad(t[0], {1, 0}), {0, 1, 2, 0}); }},
      {"reshape_of_pad", {{{3, 4}}}, [](T t) { return reshape(pad(t[0], {1, 1, 1, 0}), {2, 12}); }},
      {"slice_of_pad", {{{4, 4}}}, [](T t) { return narrow(pad(t[0], {2, 2, 2, 2}), 0, 1, 6); }},
      {"pad_of_slice", {{{4, 4}}}, [](T t) { return pad(narrow(t[0], 1, 1, 2), {1, 1}); }},
      {"pad_of_exp", {{{3, 4}}}, [](T t) { return pad(exp(t[0]), {1, 2}); }},
      {"flip", {{{3, 4}}}, [](T t) { return flip(t[0], {0, 1}); }},
      {"flip_one_axis", {{{3, 4}}}, [](T t) { return flip(t[0], 1); }},
      {"flip_of_pad_of_permute",
       {{{3, 4}}},
       [](T t) { return flip(pad(transpose(t[0]), {1, 2}), 1); }},
      {"windows",
       {{{7}}},  // x[i + j] by a reshape of a broadcast, as a convolution reads it
       [](T t) {
         return narrow(reshape(narrow(reshape(broadcast_to(t[0], {4, 7}), {28}), 0, 0, 24), {3, 8}),
                       1, 0, 5);
       }},
      {"squeezes",
       {{{3, 1, 2}}},
       [](T t) { return flatten(unsqueeze(squeeze(t[0], 1), 0), 0, 1); }},
      {"slice_of_i32",
       {{{4, 5}, -50, 50, i32}},
       [](T t) { return pad(narrow(t[0], 1, 1, 3), {1, 1}); },
       false},
      {"mixed_layouts",
       {{{6, 4}}, {{4, 6}}},
       [](T t) {
         return t[0] * transpose(t[1]) + flip(t[0], 0) * pad(narrow(t[0], 0, 1, 5), {0, 0, 0, 1});
       }},
      {"concat_0", {{{2, 3}}, {{4, 3}}}, [](T t) { return concat({t[0], t[1]}, 0); }},
      {"concat_1",
       {{{2, 3}}, {{2, 1}}, {{2, 4}}},
       [](T t) { return concat({t[0], t[1], t[2]}, 1); }},
      {"concat_middle", {{{2, 3, 2}}, {{2, 1, 2}}}, [](T t) { return concat({t[0], t[1]}, -2); }},
      {"concat_of_views",
       {{{3, 2}}, {{3, 4}}},
       [](T t) {
         return concat({transpose(t[0]), narrow(transpose(t[1]), 0, 1, 2), exp(transpose(t[0]))},
                       0);
       }},
      {"concat_i32",
       {{{3}, -9, 9, i32}, {{2}, -9, 9, i32}},
       [](T t) { return concat({t[0], t[1]}, 0); },
       false},
      {"stack", {{{2, 3}}, {{2, 3}}}, [](T t) { return stack({t[0], t[1]}, 1); }},
      {"slices_of_concat",
       {{{2, 3}}, {{2, 3}}},
       [](T t) { return narrow(concat({t[0], t[1] * 2.0}, 1), 1, 2, 3); }},
  };
}

std::vector<OpCase> reduce_cases() {
  std::vector<OpCase> cases;
  const Shape shape = {3, 4, 2, 5};
  for (int mask = 1; mask < 16; ++mask) {
    std::vector<int> axes;
    for (int d = 0; d < 4; ++d) {
      if ((mask >> d & 1) != 0) axes.push_back(d);
    }
    const std::string name = axes_name(axes);
    cases.push_back({"sum_" + name, {{shape}}, [axes](T t) { return sum(t[0], axes); }});
    cases.push_back({"max_" + name, {{shape}}, [axes](T t) { return max(t[0], axes, true); }});
    cases.push_back({"min_" + name, {{shape}}, [axes](T t) { return min(t[0], axes); }});
  }
  for (int d = 0; d < 4; ++d) {
    cases.push_back(
        {"argmax_" + std::to_string(d), {{shape}}, [d](T t) { return argmax(t[0], d); }, false});
    cases.push_back({"argmin_" + std::to_string(d),
                     {{shape}},
                     [d](T t) { return argmin(t[0], d, true); },
                     false});
  }
  const Argument ties = {
      {3, 4}, 0, 0, f32, {1, 2, 2, 1, kNan, 1, kNan, 3, -kInf, -kInf, -kInf, -kInf}};
  const std::vector<OpCase> more = {
      {"sum_i32", {{{3, 7}, -2e9, 2e9, i32}}, [](T t) { return sum(t[0], 1); }, false},
      {"sum_u32", {{{3, 7}, 0, 4e9, u32}}, [](T t) { return sum(t[0], 0); }, false},
      {"max_i32", {{{3, 7}, -100, 100, i32}}, [](T t) { return max(t[0], 1); }, false},
      {"min_u32", {{{3, 7}, 0, 100, u32}}, [](T t) { return min(t[0], 0); }, false},
      {"argmax_of_all", {{{3, 7}}}, [](T t) { return argmax(t[0]); }, false},
      {"argmin_of_all_kept", {{{3, 7}}}, [](T t) { return argmin(t[0], {}, true); }, false},
      {"argmax_i32", {{{3, 7}, -3, 3, i32}}, [](T t) { return argmax(t[0], 1); }, false},
      {"argmax_ties_and_nan", {ties}, [](T t) { return argmax(t[0], 1); }, false, true},
      {"argmin_ties_and_nan", {ties}, [](T t) { return argmin(t[0], 1); }, false, true},
      {"argmin_ties_and_nan_0", {ties}, [](T t) { return argmin(t[0], 0); }, false, true},
      {"max_ties_and_nan", {ties}, [](T t) { return max(t[0], 1); }, false, true},
      {"min_ties_and_nan", {ties}, [](T t) { return min(t[0], 0); }, false, true},
      {"sum_of_nan", {ties}, [](T t) { return sum(t[0], 1); }, false, true},
      {"sum_of_one", {{{3, 1}}}, [](T t) { return sum(t[0], 1); }},
      {"sum_of_scalar", {{{}}}, [](T t) { return sum(t[0] * 2.0); }},
      {"sum_long_row", {{{2, 3000}}}, [](T t) { return sum(t[0], 1) * 0.01; }, false},
      {"sum_long_column", {{{3000, 2}}}, [](T t) { return sum(t[0], 0) * 0.01; }, false},
      {"sum_of_permuted", {{{3, 4, 5}}}, [](T t) { return sum(exp(permute(t[0], {2, 0, 1})), 1); }},
      {"sum_of_broadcast",
       {{{3, 1}}},
       [](T t) { return sum(broadcast_to(t[0], {2, 3, 4}), {0, 2}); }},
      {"sum_of_pad", {{{3, 4}}}, [](T t) { return sum(pad(t[0], {1, 2}, 0.5), 1); }},
      {"max_of_pad", {{{3, 4}, -2, -1}}, [](T t) { return max(pad(t[0], {0, 1}), 1); }},
      {"sum_of_sum", {{{3, 4, 5}}}, [](T t) { return sum(exp(sum(t[0], 2) * 0.2), 0); }},
      {"two_reductions", {{{4, 6}}}, [](T t) { return sum(t[0] * max(t[0], 1, true), 0); }},
  };
  cases.insert(cases.end(), more.begin(), more.end());
  return cases;
}

std::vector<OpCase> composite_cases() {
  std::vector<OpCase> cases = {
      {"mean", {{{3, 4}}}, [](T t) { return mean(t[0], 0); }},
      {"var", {{{3, 4}}}, [](T t) { return var(t[0], 1); }},
      {"logsumexp", {{{3, 4}}}, [](T t) { return logsumexp(t[0], {0, 1}); }},
      {"softmax", {{{3, 5}}}, [](T t) { return softmax(t[0]); }},
      {"softmax_axis_0", {{{3, 5}}}, [](T t) { return softmax(t[0], 0); }},
      {"softmax_middle", {{{2, 3, 4}}}, [](T t) { return softmax(t[0], 1); }},
      {"log_softmax", {{{3, 5}}}, [](T t) { return log_softmax(t[0]); }},
      {"gelu", {{{3, 5}}}, [](T t) { return gelu(t[0]); }},
      {"gelu_tanh", {{{3, 5}}}, [](T t) { return gelu(t[0], GeluApproximation::kTanh); }},
      {"silu", {{{3, 5}}}, [](T t) { return silu(t[0]); }},
      {"clamp", {{{3, 5}}}, [](T t) { return clamp(t[0], -0.5, 1); }},
      {"layer_norm", {{{4, 6}}, {{6}}, {{6}}}, [](T t) { return layer_norm(t[0], t[1], t[2]); }},
      {"mse", {{{4, 2}}, {{4, 2}}}, [](T t) { return mse(t[0], t[1]); }},
      {"linear", {{{2, 3, 4}}, {{5, 4}}, {{5}}}, [](T t) { return linear(t[0], t[1], t[2]); }},
      {"linear_of_vector", {{{4}}, {{5, 4}}}, [](T t) { return linear(t[0], t[1]); }},
      {"cross_entropy",
       {{{4, 5}}, {{4}, 0, 4, i32}},
       [](T t) { return cross_entropy(t[0], t[1]); }},
      {"cross_entropy_each",
       {{{2, 3, 5}}, {{2, 3}, 0, 4, i32}},
       [](T t) { return cross_entropy(t[0], t[1], Reduction::kNone); }},
      {"unpack_bytes", {{{2, 3}, 0, 4e9, u32}}, [](T t) { return unpack_bytes(t[0]); }, false},
      {"full",
       {{{2, 3}}},
       [](T t) { return t[0] + full({2, 3}, 1.5) + ones({3}) - zeros({2, 1}); }},
      {"iota", {{{2, 3}}}, [](T t) { return t[0] * iota({2, 3}, 1, f32) + iota({2, 3}, 0, f32); }},
      {"arange", {{{4}, -9, 9, i32}}, [](T t) { return t[0] + arange(4) * 2; }, false},
      {"literal",
       {{{2, 2}}},
       [](T t) { return t[0] * constant(std::vector<float>{1, -2, 3, 0.5F}, {2, 2}); }},
      {"literal_i32",
       {{{3}, -9, 9, i32}},
       [](T t) { return t[0] + constant(std::vector<std::int32_t>{-5, 6, 7}, {3}); },
       false},
  };
  return cases;
}

const std::vector<OpCase>& all_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all;
    for (const auto& part : {pointwise_cases(), view_cases(), reduce_cases(), matmul_cases(),
                             index_cases(), scan_cases(), composite_cases(), conv_cases(),
                             pool_cases(), function_cases(), arranging_cases(), attention_cases(),
                             state_space_cases(), integer_cases(), random_cases()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return cases;
}

void note_covered(const Graph& graph, std::set<std::string>& covered, ValueId first) {
  for (ValueId id = first; id < graph.size(); ++id) {
    const Node& node = graph[id];
    if (!node.origin.empty()) covered.insert("function " + node.origin);
    if (node.op->kind == OpKind::kLeaf || node.op == &ops::custom_gradient) continue;
    // For `where`, take the type of the chosen values.
    const ValueId typed = node.inputs.empty()      ? kNoValue
                          : node.op == &ops::where ? node.inputs[1]
                                                   : node.inputs[0];
    const DType dtype = typed == kNoValue ? node.type.dtype : graph[typed].type.dtype;
    covered.insert("op " + std::string(node.op->name) + " " + std::string(to_string(dtype)));
  }
}

void report_covered(const std::set<std::string>& covered) {
  std::string list;
  for (const std::string& each : covered) list += (list.empty() ? "" : ", ") + each;
  ::testing::Test::RecordProperty("covered", list);
}

std::vector<Tensor> inputs_of(GraphBuilder& builder, const OpCase& each) {
  std::vector<Tensor> inputs;
  for (const Argument& arg : each.args) {
    inputs.push_back(arg.values.empty() ? builder.input(arg.shape, arg.lo, arg.hi, arg.dtype)
                                        : builder.input(arg.shape, arg.dtype, arg.values));
  }
  return inputs;
}

}  // namespace tensorgrad::testing
