// SPDX-License-Identifier: MIT
// Compares narrow versions of the networks of examples/ with PyTorch (make_sample_fixtures.py).
// Compares the loss, all gradients and all parameters of ten optimizer steps, and the buffers of
// batch norm.
#include <cmath>

#include "golden/fixture.h"

namespace tensorgrad::testing {
namespace {

// Compares with part `step` of tensors that have one part per step.
void expect_step(const Fixture& fixture, const std::string& prefix, std::int64_t step,
                 const std::map<std::string, HostTensor>& given, double tolerance) {
  EXPECT_EQ(given.size(), fixture.all_of(prefix).size());
  for (const auto& [name, tensor] : given) {
    expect_close(tensor.floats(), fixture.batch<float>(prefix + name, step), tolerance,
                 prefix + name + " of step " + std::to_string(step));
  }
}

// Returns the contents of a model's buffers.
template <class Model>
using Kept = std::map<std::string, Tensor> (*)(const Model& net, const Inputs& in);

template <class Model>
void train(const std::string& file, Tensor (*loss)(const Model&, const Inputs&),
           CompileOptions options, const std::string& kind, const Tolerances& tolerances,
           Kept<Model> kept = nullptr) {
  const Fixture fixture("sample_" + file + ".safetensors");
  options.device = {.kind = kind, .allow_software = true};
  auto trainer = compile(Model{}, loss, options);
  trainer.upload_params(fixture.parameters());
  const std::vector<float> losses = fixture.values<float>("losses");
  ASSERT_EQ(losses.size(), 10U);
  for (std::int64_t step = 0; step < 10; ++step) {
    FeedView feed;
    std::vector<std::vector<float>> words;  // possibly bits of integers
    words.reserve(options.inputs.size());
    for (const InputSpec& input : options.inputs) {
      const auto& given = words.emplace_back(fixture.batch<float>(input.name, step));
      feed.add(input.name, HostView(input.dtype, given.data(), given.size()));
    }
    const float want = losses[static_cast<std::size_t>(step)];
    EXPECT_NEAR(trainer.step(feed).loss, want, tolerances.loss * want) << step;
    expect_step(fixture, "grads/", step, trainer.download_grads(), tolerances.gradient);
    expect_step(fixture, "params/", step, trainer.download_params(), tolerances.parameter);
  }
  ASSERT_EQ(kept != nullptr, !fixture.all_of("buffers/").empty());
  if (kept == nullptr) return;
  const auto held = trainer.attach(kept, {}).run();
  for (const auto& [name, want] : fixture.all_of("buffers/")) {
    const std::vector<float> got = held.at(name).floats(), all = want.floats();
    ASSERT_EQ(got.size(), all.size()) << name;
    for (std::size_t i = 0; i < all.size(); ++i)
      EXPECT_NEAR(got[i], all[i], tolerances.parameter) << name;
  }
}

struct Sine {
  nn::Linear in{1, 8}, mid{8, 8}, out{8, 1};
  TG_MODULE(in, mid, out)
  Tensor operator()(Tensor x) const { return out(relu(mid(relu(in(x))))); }
};

void mlp_sin(const std::string& kind, const Tolerances& tolerances) {
  train<Sine>(
      "mlp_sin", [](const Sine& net, const Inputs& in) { return mse(net(in["x"]), in["y"]); },
      {.inputs = {{"x", {16, 1}}, {"y", {16, 1}}}, .optimizer = optim::AdamW{.lr = 5e-3}}, kind,
      tolerances);
}

struct Block {
  static constexpr std::int64_t kLength = 8, kWidth = 8, kHeads = 2;
  nn::LayerNorm norm_attention{kWidth}, norm_mlp{kWidth};
  nn::Linear query{kWidth, kWidth, false}, key{kWidth, kWidth, false}, value{kWidth, kWidth, false},
      out{kWidth, kWidth, false}, up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};
  TG_MODULE(norm_attention, norm_mlp, query, key, value, out, up, down)

  static Tensor heads(Tensor x) {
    return transpose(reshape(x, {-1, kLength, kHeads, kWidth / kHeads}), 1, 2);
  }
  [[nodiscard]] Tensor attention(Tensor x) const {
    const Tensor scores =
        matmul(heads(query(x)), transpose(heads(key(x)))) / std::sqrt(1.0 * kWidth / kHeads);
    const Tensor later = iota({kLength, kLength}, 1) > iota({kLength, kLength}, 0);
    const Tensor mixed = matmul(softmax(where(later, -1e30, scores)), heads(value(x)));
    return out(reshape(transpose(mixed, 1, 2), {-1, kLength, kWidth}));
  }
  Tensor operator()(Tensor x) const {
    x = x + attention(norm_attention(x));
    return x + down(relu(up(norm_mlp(x))));
  }
};

struct Adder {
  Parameter symbols{{12, Block::kWidth}}, places{{Block::kLength, Block::kWidth}};
  std::vector<Block> blocks = std::vector<Block>(1);
  nn::LayerNorm norm{Block::kWidth};
  TG_MODULE(symbols, places, blocks, norm)
  Tensor operator()(Tensor text) const {
    Tensor x = embedding(text, symbols) + places;
    for (const Block& block : blocks) x = block(x);
    return linear(norm(x), symbols);
  }
};

void addition(const std::string& kind, const Tolerances& tolerances) {
  train<Adder>(
      "addition",
      [](const Adder& net, const Inputs& in) {
        return cross_entropy(narrow(net(in["text"]), 1, 5, 3), in["digits"]);
      },
      {.inputs = {{"text", {4, 8}, i32}, {"digits", {4, 3}, i32}},
       .optimizer = optim::AdamW{.lr = 3e-3, .weight_decay = 0.1},
       .clip_grad_norm = 1},
      kind, tolerances);
}

struct Cnn {  // no bias before a norm: its gradient is only rounding
  nn::Conv2d first{1, 4, 3, {.padding = 1}, false}, second{4, 6, 3, {.padding = 1}, false};
  nn::BatchNorm2d norm1{4}, norm2{6};
  nn::Linear hidden{24, 12}, out{12, 5};
  TG_MODULE(first, second, norm1, norm2, hidden, out)
  Tensor operator()(Tensor x) const {
    x = max_pool2d(relu(norm1(first(x))), 2);
    x = max_pool2d(relu(norm2(second(x))), 2);
    return out(relu(hidden(flatten(x, 1))));
  }
};

void fashion_cnn(const std::string& kind, const Tolerances& tolerances) {
  train<Cnn>(
      "fashion_cnn",
      [](const Cnn& net, const Inputs& in) { return cross_entropy(net(in["x"]), in["y"]); },
      {.inputs = {{"x", {6, 1, 8, 8}}, {"y", {6}, i32}}, .optimizer = optim::AdamW{.lr = 5e-3}},
      kind, tolerances,
      [](const Cnn& net, const Inputs&) {
        return std::map<std::string, Tensor>{
            {"norm1.running_mean", net.norm1.running_mean->tensor()},
            {"norm1.running_var", net.norm1.running_var->tensor()},
            {"norm2.running_mean", net.norm2.running_mean->tensor()},
            {"norm2.running_var", net.norm2.running_var->tensor()}};
      });
}

struct Vae {
  nn::Linear enter{16, 12}, mid{12, 12}, mean{12, 3}, log_variance{12, 3}, back{3, 12}, out{12, 16};
  TG_MODULE(enter, mid, mean, log_variance, back, out)
};

Tensor vae_loss(const Vae& net, const Inputs& in) {
  const Tensor h = relu(net.mid(relu(net.enter(in["x"]))));
  const Tensor mean = net.mean(h), log_variance = net.log_variance(h);
  const Tensor z = mean + exp(0.5 * log_variance) * in["noise"];
  const Tensor error = sum(square(sigmoid(net.out(relu(net.back(z)))) - in["x"]));
  return (error - 0.5 * sum(1.0 + log_variance - square(mean) - exp(log_variance))) / 8.0;
}

void vae(const std::string& kind, const Tolerances& tolerances) {
  train<Vae>("vae", vae_loss,
             {.inputs = {{"x", {8, 16}}, {"noise", {8, 3}}},
              .optimizer = optim::Adam{.lr = 1e-3},
              .clip_grad_norm = 1},
             kind, tolerances);
}

struct Letters {
  nn::Embedding letters{27, 4};
  nn::Linear enter{16, 12}, mid{12, 12}, out{12, 27};
  TG_MODULE(letters, enter, mid, out)
  Tensor operator()(Tensor context) const {
    const Tensor h = relu(enter(flatten(letters(context), 1)));
    return out(h + relu(mid(h)));
  }
};

void makemore(const std::string& kind, const Tolerances& tolerances) {
  train<Letters>(
      "makemore",
      [](const Letters& net, const Inputs& in) {
        return cross_entropy(net(in["context"]), in["letter"]);
      },
      {.inputs = {{"context", {16, 4}, i32}, {"letter", {16}, i32}},
       .optimizer = optim::AdamW{.lr = 2e-3, .weight_decay = 0.05}},
      kind, tolerances);
}

struct KanLayer {
  static constexpr std::int64_t kKnots = 8;
  KanLayer(std::int64_t in, std::int64_t out) : curves({out, in * kKnots}), weight({out, in}) {}
  Parameter curves, weight;
  TG_MODULE(curves, weight)
  Tensor operator()(Tensor x) const {
    const Tensor knot = arange(kKnots, f32);
    const Tensor u = abs(unsqueeze((x + 1.0) * (0.5 * (kKnots - 1)), -1) - knot);
    const Tensor tail = relu(2.0 - u);
    const Tensor spline =
        where(u < 1.0, 0.5 * u * u * u - u * u + 2.0 / 3, tail * tail * tail / 6.0);
    return linear(flatten(spline, -2), curves) + linear(silu(x), weight);
  }
};

struct Kan {
  KanLayer first{1, 4}, second{4, 1};
  TG_MODULE(first, second)
};

void kan(const std::string& kind, const Tolerances& tolerances) {
  train<Kan>(
      "kan",
      [](const Kan& net, const Inputs& in) { return mse(net.second(net.first(in["x"])), in["y"]); },
      {.inputs = {{"x", {16, 1}}, {"y", {16, 1}}}, .optimizer = optim::Adam{.lr = 1e-2}}, kind,
      tolerances);
}

struct Gpt {
  nn::Embedding tokens{13, 8}, places{6, 8};
  std::vector<nn::TransformerEncoderLayer> blocks{nn::TransformerEncoderLayer(
      8, 2, {.dim_feedforward = 32, .dropout = 0, .norm_first = true, .gelu = true})};
  nn::LayerNorm norm{8};
  nn::Linear head{8, 13};
  TG_MODULE(tokens, places, blocks, norm, head)
  Tensor operator()(Tensor text) const {
    Tensor x = tokens(text) + places(arange(text.size(1)));
    for (const auto& block : blocks) x = block(x, {.causal = true});
    return head(norm(x));
  }
};

void char_gpt(const std::string& kind, const Tolerances& tolerances) {
  train<Gpt>(
      "char_gpt",
      [](const Gpt& net, const Inputs& in) {
        return cross_entropy(net(narrow(in["text"], 1, 0, 6)), narrow(in["text"], 1, 1, 6));
      },
      {.inputs = {{"text", {4, 7}, i32}},
       .optimizer = optim::SGD{.lr = 5e-2, .momentum = 0.9, .nesterov = true}},
      kind, tolerances);
}

TEST(SampleGolden, mlp_sin_on_cpu) { mlp_sin("cpu", kOnCpu); }
TEST(SampleGolden, mlp_sin_on_webgpu) { mlp_sin("webgpu", kOnWebGpu); }
TEST(SampleGolden, addition_on_cpu) { addition("cpu", kOnCpu); }
TEST(SampleGolden, addition_on_webgpu) { addition("webgpu", kOnWebGpu); }
TEST(SampleGolden, fashion_cnn_on_cpu) { fashion_cnn("cpu", kOnCpu); }
TEST(SampleGolden, fashion_cnn_on_webgpu) { fashion_cnn("webgpu", kOnWebGpu); }
TEST(SampleGolden, vae_on_cpu) { vae("cpu", kOnCpu); }
TEST(SampleGolden, vae_on_webgpu) { vae("webgpu", kOnWebGpu); }
TEST(SampleGolden, makemore_on_cpu) { makemore("cpu", kOnCpu); }
TEST(SampleGolden, makemore_on_webgpu) { makemore("webgpu", kOnWebGpu); }
TEST(SampleGolden, kan_on_cpu) { kan("cpu", kOnCpu); }
TEST(SampleGolden, kan_on_webgpu) { kan("webgpu", kOnWebGpu); }
TEST(SampleGolden, char_gpt_on_cpu) { char_gpt("cpu", kOnCpu); }
TEST(SampleGolden, char_gpt_on_webgpu) { char_gpt("webgpu", kOnWebGpu); }

}  // namespace
}  // namespace tensorgrad::testing
