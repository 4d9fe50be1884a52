// SPDX-License-Identifier: MIT
// Layers: initial values, and outputs compared with their formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

template <class Model>
std::map<std::string, HostTensor> initial(const Model& model, std::uint32_t seed = 1) {
  CompiledFunction forward =
      compile_function(model, [](const Model&, const Inputs&) { return zeros({1}); },
                       {.device = {.kind = "cpu"}, .seed = seed});
  return forward.download_params();
}

struct Moments {
  double mean = 0, deviation = 0, least = 0, most = 0;
};

Moments moments(const std::vector<float>& values) {
  Moments m{.least = values[0], .most = values[0]};
  for (const double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.least = std::min(m.least, v);
    m.most = std::max(m.most, v);
  }
  for (const double v : values)
    m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// Wraps a layer in a field, so that the names of its parameters begin with "layer.".
template <class Layer>
struct Model {
  Layer layer;
  TG_MODULE(layer)
};

// Sets the parameters to `params` and returns the output of the layer for `x`.
template <class Layer>
std::vector<float> values(const Layer& layer, const Shape& shape, const std::vector<float>& x,
                          const std::map<std::string, std::vector<float>>& params = {},
                          bool training = false) {
  CompiledFunction forward = compile_function(
      Model<Layer>{layer},
      [](const Model<Layer>& model, const Inputs& in) { return model.layer(in["x"]); },
      {.inputs = {{"x", shape}}, .device = {.kind = "cpu"}, .training = training});
  auto tensors = forward.download_params();
  for (const auto& [name, given] : params) {
    const auto bytes = std::as_bytes(std::span(given));
    tensors.at("layer." + name).bytes.assign(bytes.begin(), bytes.end());
  }
  forward.upload_params(tensors);
  return forward({{"x", x}}).floats();
}

TEST(Linear, initial_values_are_uniform_within_one_over_root_of_inputs) {
  const auto params = initial(nn::Linear(100, 400));
  for (const std::string name : {"weight", "bias"}) {
    const Moments m = moments(params.at(name).floats());
    EXPECT_NEAR(m.mean, 0, 0.01) << name;
    EXPECT_NEAR(m.deviation, 0.1 / std::sqrt(3.0), 0.005) << name;
    EXPECT_GE(m.least, -0.1F) << name;
    EXPECT_LT(m.most, 0.1F) << name;
    EXPECT_GT(m.most, 0.095F) << name;
  }
  EXPECT_EQ(params.at("weight").shape, (Shape{400, 100}));
  EXPECT_EQ(initial(nn::Linear(4, 2, false)).size(), 1U);
}

TEST(Linear, initial_values_depend_on_the_seed) {
  const nn::Linear layer(8, 8);
  EXPECT_EQ(initial(layer, 3).at("weight").bytes, initial(layer, 3).at("weight").bytes);
  EXPECT_NE(initial(layer, 3).at("weight").bytes, initial(layer, 4).at("weight").bytes);
  const auto two = initial(nn::Sequential(nn::Linear(8, 8), nn::Linear(8, 8)));
  EXPECT_NE(two.at("0.weight").bytes, two.at("1.weight").bytes);
}

TEST(Embedding, initial_values_are_normal) {
  const std::vector<float> weight = initial(nn::Embedding(100, 200)).at("weight").floats();
  const Moments m = moments(weight);
  EXPECT_NEAR(m.mean, 0, 0.03);
  EXPECT_NEAR(m.deviation, 1, 0.03);
  EXPECT_GT(m.most, 3);
  const auto within =
      std::count_if(weight.begin(), weight.end(), [](float v) { return std::abs(v) < 1; });
  EXPECT_NEAR(static_cast<double>(within) / 20000, 0.6827, 0.01);
}

TEST(LayerNorm, initial_weight_is_one_and_bias_zero) {
  const auto params = initial(nn::LayerNorm(3));
  EXPECT_EQ(params.at("weight").floats(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(params.at("bias").floats(), (std::vector<float>{0, 0, 0}));
}

TEST(LayerNorm, without_bias_has_only_a_weight) {
  const nn::LayerNorm norm(2, 1e-5, false);
  EXPECT_EQ(initial(norm).size(), 1U);
  const auto got = values(norm, {1, 2}, {3, 1}, {{"weight", {2, 4}}});
  EXPECT_NEAR(got[0], 2, 1e-4);
  EXPECT_NEAR(got[1], -4, 1e-4);
}

TEST(Linear, is_x_times_the_transposed_weight_plus_bias) {
  const std::map<std::string, std::vector<float>> params = {{"weight", {1, 2, 3, 4, 5, 6}},
                                                            {"bias", {10, 20}}};
  EXPECT_EQ(values(nn::Linear(3, 2), {2, 3}, {1, 0, 0, 1, 1, 1}, params),
            (std::vector<float>{11, 24, 16, 35}));
  EXPECT_EQ(values(nn::Linear(3, 2), {3}, {0, 1, 0}, params), (std::vector<float>{12, 25}));
  EXPECT_EQ(values(nn::Linear(3, 2), {2, 1, 1, 3}, {0, 0, 1, 2, 0, 0}, params),
            (std::vector<float>{13, 26, 12, 28}));
  EXPECT_EQ(values(nn::Linear(3, 2, false), {1, 3}, {1, 1, 1}, {{"weight", {1, 2, 3, 4, 5, 6}}}),
            (std::vector<float>{6, 15}));
}

TEST(LayerNorm, is_its_formula_in_double) {
  constexpr std::size_t kSize = 37;
  std::vector<float> x(3 * kSize), weight(kSize), bias(kSize);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i)) + 5;
  for (std::size_t i = 0; i < kSize; ++i) {
    weight[i] = 0.1F * static_cast<float>(i) - 1;
    bias[i] = std::cos(static_cast<float>(i));
  }
  const std::vector<float> got =
      values(nn::LayerNorm(kSize, 1e-3), {3, kSize}, x, {{"weight", weight}, {"bias", bias}});
  for (std::size_t row = 0; row < 3; ++row) {
    const float* r = x.data() + row * kSize;
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < kSize; ++i) mean += r[i] / static_cast<double>(kSize);
    for (std::size_t i = 0; i < kSize; ++i) variance += (r[i] - mean) * (r[i] - mean) / kSize;
    for (std::size_t i = 0; i < kSize; ++i) {
      const double want = (r[i] - mean) / std::sqrt(variance + 1e-3) * weight[i] + bias[i];
      EXPECT_NEAR(got[row * kSize + i], want, 1e-5) << row << ", " << i;
    }
  }
}

TEST(LayerNorm, of_equal_elements_is_its_bias) {
  for (const float got : values(nn::LayerNorm(4), {2, 4}, std::vector<float>(8, 1e6F))) {
    EXPECT_EQ(got, 0.0F);
  }
}

TEST(Embedding, returns_the_rows_of_its_indices) {
  CompiledFunction forward =
      compile_function(nn::Embedding(3, 2),
                       [](const nn::Embedding& layer, const Inputs& in) { return layer(in["i"]); },
                       {.inputs = {{"i", {2, 2}, i32}}, .device = {.kind = "cpu"}});
  const std::vector<float> weight = forward.download_params().at("weight").floats();
  const std::vector<std::int32_t> index = {2, 0, 2, 1};
  const HostTensor out = forward({{"i", index}});
  EXPECT_EQ(out.shape, (Shape{2, 2, 2}));
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_EQ(out.floats()[2 * i + k], weight[2 * static_cast<std::size_t>(index[i]) + k]);
  }
}

TEST(Dropout, drops_and_scales_what_it_keeps) {
  const std::vector<float> x(10000, 3), got = values(nn::Dropout(0.25), {100, 100}, x, {}, true);
  std::size_t dropped = 0;
  for (const float v : got) {
    EXPECT_TRUE(v == 0 || v == 4) << v;
    dropped += v == 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(dropped), 2500, 150);
  EXPECT_EQ(values(nn::Dropout(0), {100, 100}, x, {}, true), x);
}

TEST(Dropout, gradient_passes_where_the_value_did) {
  struct Scale {
    Parameter w{{1000}, init::ones()};
    TG_MODULE(w)
  };
  auto trainer =
      compile(Scale{}, [](const Scale& m, const Inputs&) { return sum(dropout(m.w, 0.5)); },
              {.optimizer = optim::SGD{.lr = 1}, .device = {.kind = "cpu"}});
  const float loss = trainer.step().loss;
  const std::vector<float> first = trainer.download_grads().at("w").floats();
  EXPECT_EQ(std::accumulate(first.begin(), first.end(), 0.0F), loss) << "2 where it was kept";
  trainer.step();
  EXPECT_NE(trainer.download_grads().at("w").floats(), first) << "another pattern at each step";
}

TEST(Activations, compute_the_functions_of_their_names) {
  const std::vector<float> x = {-3, -0.5F, 0, 0.25F, 2};
  const auto each = [&](const auto& layer, double (*formula)(double)) {
    const std::vector<float> got = values(layer, {5}, x);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(got[i], formula(x[i]), 2e-6) << x[i];
  };
  each(nn::ReLU{}, [](double v) { return std::max(v, 0.0); });
  each(nn::Tanh{}, [](double v) { return std::tanh(v); });
  each(nn::Sigmoid{}, [](double v) { return 1 / (1 + std::exp(-v)); });
  each(nn::SiLU{}, [](double v) { return v / (1 + std::exp(-v)); });
  each(nn::GELU{}, [](double v) { return v * 0.5 * (1 + std::erf(v / std::sqrt(2.0))); });
}

TEST(BatchNorm, without_affine_and_running_statistics_has_nothing_to_keep) {
  const nn::BatchNorm1d plain(2, {.affine = false, .track_running_stats = false});
  EXPECT_TRUE(initial(plain).empty());
  const std::vector<float> x = {1, 10, 3, 30};
  for (const bool training : {false, true}) {  // uses the statistics of the batch
    const std::vector<float> got = values(plain, {2, 2}, x, {}, training);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], i < 2 ? -1 : 1, 1e-5);
  }
  EXPECT_EQ(values(plain, {1, 2}, {5, 6}), (std::vector<float>{0, 0}));
  EXPECT_EQ(values(nn::BatchNorm1d(2, {.epsilon = 0, .affine = false}), {2, 2}, x), x);
}

TEST(Embedding, of_padding_is_zero_and_gets_no_gradient) {
  struct Net {
    nn::Embedding table{4, 3, {.padding_idx = 2}};
    TG_MODULE(table)
  };
  auto trainer = compile(
      Net{}, [](const Net& net, const Inputs& in) { return sum(square(net.table(in["i"]) + 1.0)); },
      {.inputs = {{"i", {3}, i32}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
  auto rows = trainer.attach([](const Net& net, const Inputs& in) { return net.table(in["i"]); },
                             {.inputs = {{"i", {3}, i32}}});
  const std::vector<std::int32_t> index = {2, 1, 2};
  const std::vector<float> got = rows({{"i", index}}).floats();
  EXPECT_EQ(std::vector(got.begin(), got.begin() + 3), (std::vector<float>{0, 0, 0}));
  EXPECT_NE(got[3], 0);
  EXPECT_EQ(got[8], 0);
  trainer.step({{"i", index}});
  const std::vector<float> grad = trainer.download_grads().at("table.weight").floats();
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(grad[i] != 0, i / 3 == 1) << i;
}

TEST(Sequential, runs_its_modules_in_order_and_names_them_by_position) {
  const nn::Sequential net(nn::Linear(2, 2, false), nn::ReLU{}, nn::Linear(2, 1));
  const std::vector<float> got =
      values(net, {2, 2}, {1, 2, -3, 4},
             {{"0.weight", {1, 0, 0, 1}}, {"2.weight", {10, 1}}, {"2.bias", {0.5F}}});
  EXPECT_EQ(got, (std::vector<float>{12.5F, 4.5F}));
  EXPECT_EQ(net.size(), 3U);
}

TEST(Sequential, copies_its_modules_but_shares_what_is_shared) {
  const auto shared = std::make_shared<nn::Linear>(2, 2, false);
  const nn::Sequential one(shared, nn::Linear(2, 2, false));
  struct Pair {
    nn::Sequential a, b;
    TG_MODULE(a, b)
  };
  std::vector<std::string> names;
  for (const auto& [name, tensor] : initial(Pair{one, one})) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"a.0.weight", "a.1.weight", "b.1.weight"}));
}

}  // namespace
}  // namespace tensorgrad::testing
