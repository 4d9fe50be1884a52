// SPDX-License-Identifier: MIT
// Compares functions with PyTorch (make_function_fixtures.py): values and the gradients of
// sum(result * w), in the interpreter and on the CPU.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "golden/fixture.h"
#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

using T = const std::vector<Tensor>&;
using Apply = std::function<Tensor(T)>;

constexpr Reduction kMean = Reduction::kMean, kSum = Reduction::kSum, kNone = Reduction::kNone,
                    kBatchMean = Reduction::kBatchMean;

struct Case {
  std::string name;
  Apply apply;
};

template <class Op>
Case one(const std::string& name, Op op) {
  return {name, [op](T t) { return op(t[0], Loc::current()); }};
}

std::vector<Case> activations() {
  return {
      {"leaky_relu", [](T t) { return leaky_relu(t[0], 0.1); }},
      {"elu", [](T t) { return elu(t[0], 0.7); }},
      {"celu", [](T t) { return celu(t[0], 0.7); }},
      {"hardtanh", [](T t) { return hardtanh(t[0]); }},
      {"threshold", [](T t) { return threshold(t[0], 0.5, -2); }},
      {"gelu", [](T t) { return gelu(t[0]); }},
      {"gelu_tanh", [](T t) { return gelu(t[0], GeluApproximation::kTanh); }},
      {"softplus", [](T t) { return softplus(t[0]); }},
      one("selu", selu),
      one("relu6", relu6),
      one("hardsigmoid", hardsigmoid),
      one("hardswish", hardswish),
      one("mish", mish),
      one("logsigmoid", logsigmoid),
      one("softsign", softsign),
      one("tanhshrink", tanhshrink),
      one("silu", silu),
      {"atan", [](T t) { return atan(t[0]); }},
      {"sinh", [](T t) { return sinh(t[0]); }},
      {"cosh", [](T t) { return cosh(t[0]); }},
      {"asin", [](T t) { return asin(t[0]); }},
      {"acos", [](T t) { return acos(t[0]); }},
      {"asinh", [](T t) { return asinh(t[0]); }},
      {"acosh", [](T t) { return acosh(t[0]); }},
      {"atanh", [](T t) { return atanh(t[0]); }},
      {"log10", [](T t) { return log10(t[0]); }},
      {"hypot", [](T t) { return hypot(t[0], t[1]); }},
      {"glu", [](T t) { return glu(t[0]); }},
      {"prelu", [](T t) { return prelu(t[0], t[1]); }},
      {"clamp", [](T t) { return clamp(t[0], t[1], t[2]); }},
      {"lerp", [](T t) { return lerp(t[0], t[1], t[2]); }},
      {"remainder", [](T t) { return remainder(t[0], t[1]); }},
      {"remainder_i32", [](T t) { return remainder(t[0], t[1]); }},
      {"floor_divide", [](T t) { return floor_divide(t[0], t[1]); }},
      {"floor_divide_i32", [](T t) { return floor_divide(t[0], t[1]); }},
      {"nan_to_num", [](T t) { return nan_to_num(t[0]); }},
  };
}

void add_losses_by_reduction(std::vector<Case>& cases, const std::string& how, Reduction r) {
  const std::vector<Case> more = {
      {"mse_loss_", [r](T t) { return mse_loss(t[0], t[1], r); }},
      {"l1_loss_", [r](T t) { return l1_loss(t[0], t[1], r); }},
      {"huber_loss_", [r](T t) { return huber_loss(t[0], t[1], 0.6, r); }},
      {"smooth_l1_loss_", [r](T t) { return smooth_l1_loss(t[0], t[1], 0.6, r); }},
      {"cross_entropy_", [r](T t) { return cross_entropy(t[0], t[1], r); }},
      {"cross_entropy_ignore_",
       [r](T t) { return cross_entropy(t[0], t[1], {.ignore_index = -100, .reduction = r}); }},
      {"cross_entropy_all_",
       [r](T t) {
         return cross_entropy(
             t[0], t[1],
             {.weight = t[2], .ignore_index = -100, .label_smoothing = 0.2, .reduction = r});
       }},
      {"cross_entropy_shares_",
       [r](T t) {
         return cross_entropy(t[0], t[1], {.weight = t[2], .label_smoothing = 0.2, .reduction = r});
       }},
      {"nll_loss_",
       [r](T t) {
         return nll_loss(t[0], t[1], {.weight = t[2], .ignore_index = -100, .reduction = r});
       }},
      {"bce_",
       [r](T t) { return binary_cross_entropy(t[0], t[1], {.weight = t[2], .reduction = r}); }},
      {"bce_logits_",
       [r](T t) {
         return binary_cross_entropy_with_logits(
             t[0], t[1], {.weight = t[2], .pos_weight = t[3], .reduction = r});
       }},
  };
  for (const Case& each : more) cases.push_back({each.name + how, each.apply});
}

std::vector<Case> losses() {
  std::vector<Case> cases = {
      {"huber_far", [](T t) { return huber_loss(t[0], t[1], 1, kNone); }},
      {"cross_entropy_masked", [](T t) { return cross_entropy(t[0], t[1], kNone); }},
      {"cross_entropy_axis_1", [](T t) { return cross_entropy(t[0], t[1], {.axis = 1}); }},
      {"bce_logits_far",
       [](T t) { return binary_cross_entropy_with_logits(t[0], t[1], {.reduction = kNone}); }},
      {"kl_div_hole", [](T t) { return kl_div(t[0], t[1], kNone); }},
      {"cosine_similarity", [](T t) { return cosine_similarity(t[0], t[1]); }},
      {"cosine_similarity_short", [](T t) { return cosine_similarity(t[0], t[1], 0); }},
      {"triplet", [](T t) { return triplet_margin_loss(t[0], t[1], t[2], 1, false, kNone); }},
      {"triplet_swap", [](T t) { return triplet_margin_loss(t[0], t[1], t[2], 1, true); }},
  };
  add_losses_by_reduction(cases, "mean", kMean);
  add_losses_by_reduction(cases, "sum", kSum);
  add_losses_by_reduction(cases, "none", kNone);
  const std::pair<std::string, Reduction> reductions[] = {
      {"mean", kMean}, {"sum", kSum}, {"none", kNone}, {"batchmean", kBatchMean}};
  for (const auto& [how, reduction] : reductions) {
    cases.push_back({"kl_div_" + how, [r = reduction](T t) { return kl_div(t[0], t[1], r); }});
    cases.push_back(
        {"kl_div_log_" + how, [r = reduction](T t) { return kl_div(t[0], t[1], r, true); }});
  }
  const auto signs = [] { return constant(std::vector<float>{1, -1, 1, -1}, {4}); };
  cases.push_back({"cosine_embedding",
                   [signs](T t) { return cosine_embedding_loss(t[0], t[1], signs(), -0.3); }});
  cases.push_back(
      {"hinge_embedding", [signs](T t) { return hinge_embedding_loss(t[0], signs(), 0.4); }});
  cases.push_back(
      {"margin_ranking", [signs](T t) { return margin_ranking_loss(t[0], t[1], signs(), 0.2); }});
  for (const bool full : {false, true}) {
    const std::string name = full ? "True" : "False";
    cases.push_back(
        {"poisson_" + name, [full](T t) { return poisson_nll_loss(t[0], t[1], {.full = full}); }});
    cases.push_back({"poisson_rate_" + name, [full](T t) {
                       return poisson_nll_loss(t[0], t[1], {.log_input = false, .full = full});
                     }});
    cases.push_back({"gaussian_" + name,
                     [full](T t) { return gaussian_nll_loss(t[0], t[1], t[2], {.full = full}); }});
  }
  return cases;
}

std::vector<Case> others() {
  return {
      {"layer_norm", [](T t) { return layer_norm(t[0], {6, 4}, t[1], t[2]); }},
      {"rms_norm", [](T t) { return rms_norm(t[0], t[1]); }},
      {"rms_norm_small", [](T t) { return rms_norm(t[0]); }},
      {"group_norm", [](T t) { return group_norm(t[0], 3, t[1], t[2]); }},
      {"instance_norm", [](T t) { return instance_norm(t[0]); }},
      {"batch_norm",
       [](T t) {
         const auto [mean, var] = batch_statistics(t[0]);
         return batch_norm(t[0], mean, var, t[1], t[2]);
       }},
      {"normalize", [](T t) { return normalize(t[0]); }},
      {"softmax_masked", [](T t) { return softmax(t[0]); }},
      {"attention", [](T t) { return scaled_dot_product_attention(t[0], t[1], t[2]); }},
      {"attention_causal",
       [](T t) { return scaled_dot_product_attention(t[0], t[1], t[2], {.causal = true}); }},
      {"attention_masked",
       [](T t) { return scaled_dot_product_attention(t[0], t[1], t[2], {.mask = ne(t[3], 0)}); }},
      {"attention_added",
       [](T t) { return scaled_dot_product_attention(t[0], t[1], t[2], {.mask = t[3]}); }},
      {"attention_grouped",
       [](T t) {
         return scaled_dot_product_attention(t[0], t[1], t[2],
                                             {.causal = true, .enable_gqa = true});
       }},
      {"einsum_batched", [](T t) { return einsum("bij,bkj->kbi", t); }},
      {"einsum_dots", [](T t) { return einsum("...ij,...jk", t); }},
      {"einsum_implied", [](T t) { return einsum("ca,aB", t); }},
      {"einsum_trace", [](T t) { return einsum("iji->j", t); }},
      {"tensordot", [](T t) { return tensordot(t[0], t[1], {0, 2}, {2, 0}); }},
      {"pad_reflect", [](T t) { return pad(t[0], {3, 1, 0, 2}, PadMode::kReflect); }},
      {"pad_replicate", [](T t) { return pad(t[0], {5, 1, 2, 0}, PadMode::kReplicate); }},
      {"pad_circular", [](T t) { return pad(t[0], {4, 1, 1, 3}, PadMode::kCircular); }},
      {"roll", [](T t) { return roll(t[0], {1, -5}, {0, 1}); }},
      {"tile", [](T t) { return tile(t[0], {2, 1, 2}); }},
      {"repeat_interleave", [](T t) { return repeat_interleave(t[0], 3, 1); }},
      {"diagonal", [](T t) { return diagonal(t[0], -1, 1, 2); }},
      {"diag", [](T t) { return diag(t[0], 2); }},
      {"tril", [](T t) { return tril(t[0], 1); }},
      {"triu", [](T t) { return triu(t[0], -1); }},
      {"movedim", [](T t) { return movedim(t[0], {0, -1}, {-1, 1}); }},
      {"linspace", [](T t) { return t[0] + linspace(-1, 2.5, 7); }},
      {"take_along_dim", [](T t) { return take_along_dim(t[0], t[1], 0); }},
      {"scatter", [](T t) { return scatter(t[0], 0, t[1], t[2]); }},
      {"index_add", [](T t) { return index_add(t[0], 1, t[1], t[2]); }},
  };
}

const Fixture& fixture() {
  static const Fixture file("functions.safetensors");
  return file;
}

void expect_near(const Values& got, const Values& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) continue;
    EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << what << ", element " << i;
  }
}

class Function : public ::testing::TestWithParam<Case> {};

TEST_P(Function, has_the_values_and_gradients_of_pytorch) {
  const std::string& name = GetParam().name;
  GraphBuilder builder;
  std::vector<Tensor> operands, floats;
  std::vector<std::string> grads;
  for (int i = 0; fixture().has(name + "/in" + std::to_string(i)); ++i) {
    const std::string in = name + "/in" + std::to_string(i);
    operands.push_back(
        builder.input(fixture().shape(in), fixture().dtype(in), fixture().numbers(in)));
    if (!fixture().has(name + "/grad" + std::to_string(i))) continue;
    floats.push_back(operands.back());
    grads.push_back(name + "/grad" + std::to_string(i));
  }
  const Tensor y = GetParam().apply(operands);
  EXPECT_EQ(y.shape(), fixture().shape(name + "/out"));
  builder.output(name + "/out", y);
  if (!floats.empty()) {
    const std::vector<Tensor> given = grad(sum(y * weights_like(y)), floats);
    for (std::size_t i = 0; i < given.size(); ++i) builder.output(grads[i], given[i]);
  }
  grads.push_back(name + "/out");
  const ValueMap exact = interpret_graph(builder.graph(), builder.leaves);
  const ValueMap cpu = run_graph(builder.graph(), builder.leaves, Where::kCpu);
  for (const std::string& each : grads) {
    expect_near(exact.at(each), fixture().numbers(each), 1e-6, each + " in double");
    expect_near(cpu.at(each), fixture().numbers(each), 3e-5, each + " on the cpu");
  }
}

std::vector<Case> all() {
  std::vector<Case> cases = activations();
  for (const auto& part : {losses(), others()}) cases.insert(cases.end(), part.begin(), part.end());
  return cases;
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Golden, Function, ::testing::ValuesIn(all()), name_of);

TEST(Function, every_fixture_has_a_case) {
  std::set<std::string> names;
  for (const Case& each : all()) names.insert(each.name);
  for (const std::string& name : fixture().names())
    EXPECT_TRUE(names.contains(name.substr(0, name.find('/')))) << name;
}

}  // namespace
}  // namespace tensorgrad::testing
