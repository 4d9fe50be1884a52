// SPDX-License-Identifier: MIT
// Two models against PyTorch (make_fixtures.py): losses of ten steps, every gradient of the first,
// every parameter after the last.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

class Fixture {
 public:
  explicit Fixture(const std::string& name)
      : file_(read_safetensors(std::string(TENSORGRAD_SOURCE_DIR) + "/tests/golden/" + name)) {}

  template <class T>
  [[nodiscard]] std::vector<T> values(const std::string& name) const {
    const std::vector<std::byte>& data = file_.tensors.at(name).data;
    std::vector<T> values(data.size() / sizeof(T));
    std::memcpy(values.data(), data.data(), data.size());
    return values;
  }
  // The part of `name` that step number `step` is given.
  template <class T>
  [[nodiscard]] std::vector<T> batch(const std::string& name, std::int64_t step) const {
    const std::vector<T> all = values<T>(name);
    const auto size = static_cast<std::ptrdiff_t>(all.size()) / file_.tensors.at(name).shape.at(0);
    return {all.begin() + step * size, all.begin() + (step + 1) * size};
  }
  [[nodiscard]] std::map<std::string, HostTensor> parameters() const {
    std::map<std::string, HostTensor> parameters;
    for (const auto& [name, tensor] : file_.tensors) {
      if (name.starts_with("init/")) parameters[name.substr(5)] = {f32, tensor.shape, tensor.data};
    }
    return parameters;
  }

 private:
  StoredFile file_;
};

struct Tolerances {
  double loss, gradient, parameter;
};
constexpr Tolerances kCpu = {1e-5, 1e-4, 1e-4}, kWebGpu = {2e-5, 2e-4, 5e-4};

// `tolerance` is a share of the tensor's largest element.
void expect_tensors(const Fixture& fixture, const std::string& prefix,
                    const std::map<std::string, HostTensor>& given, double tolerance) {
  EXPECT_EQ(given.size(), fixture.parameters().size());
  for (const auto& [name, tensor] : given) {
    const std::vector<float> want = fixture.values<float>(prefix + name), got = tensor.floats();
    ASSERT_EQ(got.size(), want.size()) << prefix << name;
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(want[i])));
      const double difference = std::abs(static_cast<double>(got[i]) - want[i]);
      worst = difference <= worst ? worst : difference;  // NaN stays
    }
    EXPECT_LE(worst, tolerance * largest) << prefix << name;
  }
}

template <class Model, class Next>
void train(Trainer<Model>& trainer, const Fixture& fixture, const Tolerances& tolerances,
           Next next) {
  trainer.upload_params(fixture.parameters());
  const std::vector<float> losses = fixture.values<float>("losses");
  ASSERT_EQ(losses.size(), 10U);
  for (std::size_t step = 0; step < losses.size(); ++step) {
    EXPECT_NEAR(next(static_cast<std::int64_t>(step)), losses[step], tolerances.loss * losses[step])
        << step;
    if (step == 0) expect_tensors(fixture, "grad/", trainer.download_grads(), tolerances.gradient);
  }
  expect_tensors(fixture, "final/", trainer.download_params(), tolerances.parameter);
}

DeviceOptions device(const std::string& kind) { return {.kind = kind, .allow_software = true}; }

struct Mlp {
  nn::Linear hidden{64, 32}, out{32, 10};
  TG_MODULE(hidden, out)
};

void train_mlp(const std::string& kind, const Tolerances& tolerances) {
  const Fixture fixture("mlp.safetensors");
  CompileOptions options{.inputs = {{"x", {16, 64}}, {"t", {16}, i32}},
                         .optimizer = optim::AdamW{.lr = 3e-3, .weight_decay = 0.05},
                         .clip_grad_norm = 0.5,
                         .device = device(kind)};
  auto trainer = compile(
      Mlp{},
      [](const Mlp& net, const Inputs& in) {
        return cross_entropy(net.out(relu(net.hidden(in["x"]))), in["t"]);
      },
      options);
  train(trainer, fixture, tolerances, [&](std::int64_t step) {
    const auto x = fixture.batch<float>("x", step);
    const auto t = fixture.batch<std::int32_t>("t", step);
    return trainer.step({{"x", x}, {"t", t}}).loss;
  });
}

TEST(Golden, mlp_with_adamw_and_clipping_on_cpu) { train_mlp("cpu", kCpu); }
TEST(Golden, mlp_with_adamw_and_clipping_on_webgpu) { train_mlp("webgpu", kWebGpu); }

constexpr std::int64_t kVocab = 17, kWidth = 16, kLength = 8, kHeads = 2, kBatch = 4;

struct LanguageModel {
  nn::Embedding tokens{kVocab, kWidth}, places{kLength, kWidth};
  nn::LayerNorm norm1{kWidth}, norm2{kWidth}, norm3{kWidth};
  nn::Linear qkv{kWidth, 3 * kWidth, false}, joined{kWidth, kWidth}, up{kWidth, 4 * kWidth},
      down{4 * kWidth, kWidth};
  TG_MODULE(tokens, places, norm1, norm2, norm3, qkv, joined, up, down)

  Tensor attention(Tensor x) const {
    const Tensor parts =
        permute(reshape(qkv(x), {kBatch, kLength, 3, kHeads, kWidth / kHeads}), {2, 0, 3, 1, 4});
    const auto part = [&](int i) { return squeeze(narrow(parts, 0, i, 1), 0); };
    const Tensor scores =
        matmul(part(0), transpose(part(1))) / std::sqrt(static_cast<double>(kWidth / kHeads));
    const Shape square = {kLength, kLength};
    const Tensor seen = iota(square, 1) <= iota(square, 0);
    const Tensor weights = softmax(where(seen, scores, -std::numeric_limits<double>::infinity()));
    return joined(reshape(transpose(matmul(weights, part(2)), 1, 2), {kBatch, kLength, kWidth}));
  }

  Tensor operator()(Tensor text) const {
    Tensor x = tokens(text) + places.weight;
    x = x + attention(norm1(x));
    x = x + down(gelu(up(norm2(x))));
    return matmul(norm3(x), transpose(tokens.weight));
  }
};

void train_language_model(const std::string& kind, const Tolerances& tolerances) {
  const Fixture fixture("lm.safetensors");
  CompileOptions options{.inputs = {{"x", {kBatch, kLength}, i32}, {"t", {kBatch, kLength}, i32}},
                         .optimizer = optim::Adam{.lr = 1e-2},
                         .device = device(kind)};
  auto trainer = compile(
      LanguageModel{},
      [](const LanguageModel& model, const Inputs& in) {
        return cross_entropy(model(in["x"]), in["t"]);
      },
      options);
  train(trainer, fixture, tolerances, [&](std::int64_t step) {
    const auto x = fixture.batch<std::int32_t>("x", step),
               t = fixture.batch<std::int32_t>("t", step);
    return trainer.step({{"x", x}, {"t", t}}).loss;
  });
}

TEST(Golden, language_model_with_adam_on_cpu) { train_language_model("cpu", kCpu); }
TEST(Golden, language_model_with_adam_on_webgpu) { train_language_model("webgpu", kWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
