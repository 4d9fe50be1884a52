// SPDX-License-Identifier: MIT
// All op cases with real arguments, with f16 tensors in place of f32. Computed results are rounded
// once; moved data is unchanged.
#include <algorithm>

#include "base/half.h"
#include "op_cases.h"

namespace tensorgrad::testing {
namespace {

constexpr double kHalfTolerance = 4e-3;

// Errors of cases that do not support f16: those that take a gradient themselves, and state space
// scans.
const std::vector<std::string> kRefuseHalf = {
    "gradient: ", "selective_scan: ", "causal_conv1d: ", "ssd: ", "rotary_scan: "};

bool has_halves(const OpCase& each) {
  return !each.edges && std::any_of(each.args.begin(), each.args.end(),
                                    [](const Argument& arg) { return arg.dtype == f32; });
}

// Returns the case with f16 arguments. Given values are rounded to f16.
OpCase in_halves(OpCase each, DType dtype = f16) {
  for (Argument& arg : each.args) {
    if (arg.dtype != f32) continue;
    arg.dtype = dtype;
    for (double& value : arg.values) value = from_half(to_half(static_cast<float>(value)));
  }
  return each;
}

bool is_refused(const OpCase& each) {
  GraphBuilder builder(7);
  try {
    static_cast<void>(each.apply(inputs_of(builder, each)));
    return false;
  } catch (const UserError& error) {
    const bool known =
        std::any_of(kRefuseHalf.begin(), kRefuseHalf.end(), [&](const std::string& op) {
          return error.message().starts_with(op) &&
                 error.message().find("f16") != std::string::npos;
        });
    EXPECT_TRUE(known) << each.name << ": " << error.what();
    return true;
  }
}

std::vector<OpCase> half_cases(DType dtype = f16) {
  std::vector<OpCase> cases;
  for (const OpCase& each : all_cases()) {
    if (has_halves(each)) cases.push_back(in_halves(each, dtype));
  }
  return cases;
}

class HalfCase : public ::testing::TestWithParam<OpCase> {};

TEST_P(HalfCase, is_computed_in_f32_and_rounded_on_cpu) {
  if (is_refused(GetParam())) return;
  GraphBuilder builder(7);
  builder.output("y", GetParam().apply(inputs_of(builder, GetParam())));
  builder.check(Where::kCpu, kHalfTolerance);
  std::set<std::string> covered;
  note_covered(builder.graph(), covered);
  report_covered(covered);
}

INSTANTIATE_TEST_SUITE_P(Op, HalfCase, ::testing::ValuesIn(half_cases()), name_of);

// The result of a case: its type, its values for these leaves by the interpreter, and the function
// that computed it. `function` is empty if several functions or only ops did.
struct Outcome {
  DType dtype = f32;
  Values values;
  ValueMap leaves;
  std::string function;
};

Outcome outcome(const OpCase& each, const ValueMap* leaves) {
  GraphBuilder builder(7);
  const Tensor y = each.apply(inputs_of(builder, each));
  builder.output("y", y);
  if (leaves != nullptr) builder.leaves = *leaves;
  std::set<std::string> functions;
  for (const Node& node : builder.graph().nodes) {
    if (node.op->kind != OpKind::kLeaf) functions.insert(node.origin);
  }
  return {y.dtype(), interpret_graph(builder.graph(), builder.leaves).at("y"), builder.leaves,
          functions.size() == 1 ? *functions.begin() : ""};
}

// Functions of f16 return f16 (losses: f32). The result is within one rounding of that for f32, so
// no intermediate value was f16. Run by the interpreter.
TEST(Half, is_rounded_once) {
  const std::vector<OpCase> halves = half_cases(), floats = half_cases(f32);
  std::set<std::string> single, compared;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    if (is_refused(halves[i])) continue;
    const Outcome half = outcome(halves[i], nullptr), wide = outcome(floats[i], &half.leaves);
    const bool twice = halves[i].name == "conv2d_twice";  // calls one function twice
    if (wide.dtype != f32 || half.function.empty() || twice) continue;
    if (half.dtype != f16) {
      single.insert(half.function);
      continue;
    }
    compared.insert(half.function);
    double worst = 0;
    for (std::size_t k = 0; k < wide.values.size(); ++k) {
      const double want = wide.values[k], allowed = std::max(std::abs(want) * 0x1p-11, 0x1p-25);
      if (std::isfinite(want)) worst = std::max(worst, std::abs(half.values[k] - want) / allowed);
    }
    EXPECT_LT(worst, 1.0001) << halves[i].name;
  }
  EXPECT_GT(compared.size(), 50U);
  // Losses, random numbers, and the scan's last state.
  const std::set<std::string> known = {"bernoulli",
                                       "binary_cross_entropy",
                                       "binary_cross_entropy_with_logits",
                                       "cosine_similarity",
                                       "cross_entropy",
                                       "gaussian_nll_loss",
                                       "huber_loss",
                                       "kl_div",
                                       "l1_loss",
                                       "linear_cross_entropy",
                                       "margin_ranking_loss",
                                       "mse",
                                       "mse_loss",
                                       "nll_loss",
                                       "poisson_nll_loss",
                                       "rand_like",
                                       "randn_like",
                                       "selective_scan",
                                       "smooth_l1_loss",
                                       "triplet_margin_loss"};
  EXPECT_EQ(single, known);
}

// Returns the cases that use an op or function that no previous case uses. Fewer cases mean fewer
// pipelines, whose creation dominates the time on a GPU.
using MakeHalf = std::function<void(GraphBuilder&, const OpCase&)>;
std::vector<OpCase> telling(const std::vector<OpCase>& cases, const MakeHalf& make,
                            std::set<std::string>& covered) {
  std::vector<OpCase> chosen;
  for (const OpCase& each : cases) {
    const std::size_t before = covered.size();
    GraphBuilder builder(7);
    make(builder, each);
    note_covered(builder.graph(), covered);
    std::erase_if(covered, [](const std::string& entry) { return entry.ends_with(".grad"); });
    if (covered.size() > before) chosen.push_back(each);
  }
  return chosen;
}

// Compares the cases with the interpreter. `known` is covered elsewhere.
void check_halves(Where where, const std::vector<OpCase>& cases, const MakeHalf& make,
                  const std::set<std::string>& known = {}) {
  std::set<std::string> covered = known;
  const std::vector<OpCase> chosen = telling(cases, make, covered);
  GraphBuilder builder(7);
  for (const OpCase& each : chosen) make(builder, each);
  builder.check(where, kHalfTolerance);
  for (const std::string& each : known) covered.erase(each);
  report_covered(covered);
}

std::vector<OpCase> taken_cases() {
  std::vector<OpCase> cases = half_cases();
  std::erase_if(cases, is_refused);
  return cases;
}

void make_value(GraphBuilder& builder, const OpCase& each) {
  builder.output(each.name, each.apply(inputs_of(builder, each)));
}

TEST(HalfOnDevice, is_computed_in_f32_and_rounded_on_webgpu) {
  check_halves(Where::kWebGpu, taken_cases(), make_value);
}

// Adds gradients with respect to f16 and f32 tensors, or those of the sum of their squares.
void make_gradients(GraphBuilder& builder, const OpCase& each, bool twice = false) {
  const std::vector<Tensor> args = inputs_of(builder, each);
  std::vector<Tensor> reals = args;
  std::erase_if(reals, [](const Tensor& arg) { return arg.dtype() != f16 && arg.dtype() != f32; });
  const Tensor y = each.apply(args);
  std::vector<Tensor> grads = grad(sum(log1p(square(cast(y, f32) + 0.7))), reals);
  if (twice) {
    Tensor loss;
    for (const Tensor& each_grad : grads) {
      const Tensor term = sum(square(cast(each_grad, f32)));
      loss = loss.trace() == nullptr ? term : loss + term;
    }
    grads = grad(loss, reals);
  }
  for (std::size_t i = 0; i < grads.size(); ++i)
    builder.output(each.name + "_d" + std::to_string(i), grads[i]);
}

// Checks only gradients with ops that the forward cases do not cover.
void check_gradients(Where where) {
  std::vector<OpCase> cases = taken_cases();
  std::set<std::string> known;
  telling(cases, make_value, known);
  std::erase_if(cases, [](const OpCase& each) { return !each.differentiable; });
  check_halves(
      where, cases, [](GraphBuilder& b, const OpCase& each) { make_gradients(b, each); }, known);
}

// Compares gradients of half_cases() with those of f32, by the interpreter, which rounds to f16 as
// specified. Returns the number of cases.
template <class Skip>
int compare_gradients(bool twice, double tolerance, Skip skip) {
  const std::vector<OpCase> halves = half_cases(), floats = half_cases(f32);
  const auto gradients = [twice](const OpCase& each, Graph* graph) {
    GraphBuilder builder(7);
    make_gradients(builder, each, twice);
    *graph = builder.graph();
    return interpret_graph(builder.graph(), builder.leaves);
  };
  int compared = 0;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    if (!halves[i].differentiable || is_refused(halves[i]) || skip(halves[i])) continue;
    Graph of_halves, of_floats;
    const ValueMap given = gradients(halves[i], &of_halves);
    expect_close(of_halves, given, gradients(floats[i], &of_floats), tolerance, halves[i].name);
    ++compared;
  }
  return compared;
}

// No gradient is lost on the way.
TEST(Half, has_the_gradients_of_f32) {
  EXPECT_GT(compare_gradients(false, 0.02, [](const OpCase&) { return false; }), 100);
}

// The first gradients of attention are ops with f16 results. Their roundings add up in large cases.
TEST(Half, attention_has_the_second_gradients_of_f32) {
  const auto skip = [](const OpCase& each) {
    return !each.name.starts_with("attention") || numel(each.args[0].shape) > 100;
  };
  EXPECT_GT(compare_gradients(true, 0.05, skip), 10);
}

TEST(Half, has_gradients_on_cpu) { check_gradients(Where::kCpu); }
TEST(HalfOnDevice, has_gradients_on_webgpu) { check_gradients(Where::kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
