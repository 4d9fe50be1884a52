// SPDX-License-Identifier: MIT
// Initial values: bounds, moments and structure as in the formulas of torch.nn.init, and the
// defaults of the layers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

template <class Model>
std::map<std::string, HostTensor> initial_of(const Model& model, std::uint32_t seed = 1) {
  CompiledFunction forward =
      compile_function(model, [](const Model&, const Inputs&) { return zeros({1}); },
                       {.device = {.kind = "cpu"}, .seed = seed});
  return forward.download_params();
}

struct One {
  Parameter w;
  TG_MODULE(w)
};

std::vector<float> elements(const Shape& shape, const Init& init, std::uint32_t seed = 1) {
  return initial_of(One{Parameter(shape, init)}, seed).at("w").floats();
}

double deviation(const std::vector<float>& values) {
  double square = 0;
  for (const double v : values) square += v * v;
  return std::sqrt(square / static_cast<double>(values.size()));
}

double most(const std::vector<float>& values) {
  double found = 0;
  for (const double v : values) found = std::max(found, std::abs(v));
  return found;
}

TEST(Init, fans_count_all_axes_after_the_second) {
  const init::Fans conv = init::fans({8, 4, 3, 5}), plain = init::fans({6, 2});
  EXPECT_EQ(conv.in, 60);
  EXPECT_EQ(conv.out, 120);
  EXPECT_EQ(plain.in, 2);
  EXPECT_EQ(plain.out, 6);
}

TEST(Init, variances_match_the_papers) {
  const Shape shape = {64, 16, 3, 3};  // fans 144 and 576
  const double n = 64 * 16 * 9;
  const struct {
    const char* name;
    Init init;
    double deviation;
    bool bounded;
  } cases[] = {
      {"kaiming_uniform", init::kaiming_uniform(shape), std::sqrt(2.0 / 144), true},
      {"kaiming_normal", init::kaiming_normal(shape), std::sqrt(2.0 / 144), false},
      {"by fan_out", init::kaiming_normal(shape, 3, init::Fan::kOut), 3 / std::sqrt(576.0), false},
      {"PyTorch's layers", init::kaiming_uniform(shape, init::leaky_relu_gain(std::sqrt(5.0))),
       1 / std::sqrt(3 * 144.0), true},
      {"xavier_uniform", init::xavier_uniform(shape, 2), 2 * std::sqrt(2.0 / 720), true},
      {"xavier_normal", init::xavier_normal(shape), std::sqrt(2.0 / 720), false},
  };
  for (const auto& each : cases) {
    const std::vector<float> x = elements(shape, each.init);
    // Standard error of the deviation s: s / sqrt(5 n) for a uniform distribution, s / sqrt(2 n)
    // for a normal one.
    EXPECT_NEAR(deviation(x), each.deviation, 5 * each.deviation / std::sqrt(2 * n)) << each.name;
    const double bound = std::sqrt(3.0) * each.deviation;
    EXPECT_EQ(most(x) <= bound * (1 + 1e-6), each.bounded) << each.name;
    EXPECT_EQ(most(x) > 0.99 * bound, true) << each.name;
  }
}

TEST(Init, trunc_normal_is_cut_at_the_bounds) {
  const std::vector<float> x = elements({20000}, init::trunc_normal(1, 2, -1, 3));
  const auto [least, greatest] = std::minmax_element(x.begin(), x.end());
  EXPECT_GE(*least, -1.0F);
  EXPECT_LE(*greatest, 3.0F);
  EXPECT_LT(*least, -0.99F);
  EXPECT_GT(*greatest, 2.99F);
  // Variance of a normal distribution if it is cut at one standard deviation s:
  //   (1 - 2 phi(1) / (2 Phi(1) - 1)) s^2 = 0.2911 s^2
  double mean = 0, square = 0;
  for (const double v : x) {
    mean += v / 20000;
    square += (v - 1) * (v - 1) / 20000;
  }
  EXPECT_NEAR(mean, 1, 5 * std::sqrt(4 * 0.2911 / 20000));
  EXPECT_NEAR(square, 4 * 0.2911, 0.04);
  for (const float v : elements({1000}, init::trunc_normal(0, 1, 6, 7))) {  // far out in the tail
    EXPECT_GE(v, 6.0F);
    EXPECT_LE(v, 7.0F);
  }
}

void expect_orthogonal(const Shape& shape, double gain) {
  const std::vector<float> x = elements(shape, init::orthogonal(gain));
  const auto rows = static_cast<std::size_t>(shape[0]), columns = x.size() / rows;
  const std::size_t count = std::min(rows, columns), size = std::max(rows, columns);
  const auto at = [&](std::size_t i, std::size_t k) {
    return static_cast<double>(rows <= columns ? x[i * columns + k] : x[k * columns + i]);
  };
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double product = 0;
      for (std::size_t k = 0; k < size; ++k) product += at(i, k) * at(j, k);
      EXPECT_NEAR(product, i == j ? gain * gain : 0, 1e-6 * gain * gain) << i << ", " << j;
    }
  }
}

TEST(Init, orthogonal_has_orthonormal_rows_or_columns) {
  expect_orthogonal({20, 30}, 1);
  expect_orthogonal({30, 20}, 1.5);
  expect_orthogonal({16, 16}, 1);
  expect_orthogonal({8, 2, 3}, 1);
  expect_orthogonal({1, 1}, 2);
}

TEST(Init, is_decided_by_the_seed) {
  for (const Init& init :
       {init::orthogonal(), init::trunc_normal(), init::kaiming_normal({5, 6})}) {
    EXPECT_EQ(elements({5, 6}, init, 3), elements({5, 6}, init, 3));
    EXPECT_NE(elements({5, 6}, init, 3), elements({5, 6}, init, 4));
  }
}

TEST(Init, of_layers_matches_pytorch) {
  const auto attention = initial_of(nn::MultiheadAttention(32, 4));
  EXPECT_NEAR(most(attention.at("in_proj_weight").floats()), std::sqrt(6.0 / (96 + 32)), 2e-3);
  EXPECT_EQ(most(attention.at("in_proj_bias").floats()), 0);
  EXPECT_EQ(most(attention.at("out_proj.bias").floats()), 0);
  EXPECT_NEAR(most(attention.at("out_proj.weight").floats()), 1 / std::sqrt(32.0), 2e-3);
  const auto grouped = initial_of(nn::MultiheadAttention(32, 4, {.bias = false, .kv_heads = 2}));
  EXPECT_EQ(grouped.at("in_proj_weight").shape, (Shape{64, 32}));
  EXPECT_EQ(grouped.size(), 2U);
  for (const auto& [name, tensor] : initial_of(nn::LSTM(5, 16, {.num_layers = 2})))
    EXPECT_NEAR(most(tensor.floats()), 0.25, 0.02) << name;
  std::set<std::string> names;
  for (const auto& [name, tensor] : initial_of(nn::GRU(5, 7, {.num_layers = 2})))
    names.insert(name);
  EXPECT_EQ(names,
            (std::set<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                   "weight_ih_l1", "weight_hh_l1", "bias_ih_l1", "bias_hh_l1"}));
  EXPECT_EQ(initial_of(nn::GRU(5, 7)).at("weight_ih_l0").shape, (Shape{21, 5}));
}

// Grouped heads equal heads with repeated keys and values.
TEST(MultiheadAttention, with_fewer_key_heads_shares_them) {
  struct Pair {
    nn::MultiheadAttention few{8, 4, {.kv_heads = 2}}, all{8, 4};
    TG_MODULE(few, all)
  };
  auto forward = compile_function(Pair{},
                                  [](const Pair& net, const Inputs& in) {
                                    return std::map<std::string, Tensor>{{"few", net.few(in["x"])},
                                                                         {"all", net.all(in["x"])}};
                                  },
                                  {.inputs = {{"x", {1, 3, 8}}}, .device = {.kind = "cpu"}});
  auto params = forward.download_params();
  const std::vector<float> weight = params.at("few.in_proj_weight").floats();
  std::vector<float> wide(weight.begin(), weight.begin() + 64);
  for (int part = 0; part < 2; ++part) {
    for (int head = 0; head < 4; ++head) {  // two rows of 8 each
      const auto from = weight.begin() + 64 + 32 * part + 16 * (head / 2);
      wide.insert(wide.end(), from, from + 16);
    }
  }
  const auto bytes = std::as_bytes(std::span(wide));
  params.at("all.in_proj_weight").bytes.assign(bytes.begin(), bytes.end());
  params.at("all.out_proj.weight") = params.at("few.out_proj.weight");
  forward.upload_params(params);
  std::vector<float> x(24);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  const NamedTensors out = forward.run({{"x", x}});
  const std::vector<float> few = out.at("few").floats(), all = out.at("all").floats();
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(few[i], all[i], 1e-6) << i;
}

}  // namespace
}  // namespace tensorgrad::testing
