// SPDX-License-Identifier: MIT
// Whole models, exported by the public functions: what they give here, onnxruntime gives too.
#include <gtest/gtest.h>

#include "onnx/made_up.h"
#include "support/models.h"
#include "support/onnxruntime.h"

namespace tensorgrad::testing {
namespace {

// Exports the function, runs it here and there.
void check(const std::string& name, CompiledFunction forward,
           const std::map<std::string, HostTensor>& inputs) {
  OnnxRuntime runtime(name);
  forward.export_onnx(runtime.path(name), {.name = name, .doc = "What a test makes."});
  Feed feed;
  for (const auto& [key, tensor] : inputs) feed.emplace(key, HostView(tensor));
  runtime.expect(name, inputs, forward.run(feed), forward.download_params());
  runtime.check();
}

TEST(OnnxModels, mlp_as_trained_and_as_averaged) {
  auto trainer = compile(
      Mlp{}, mlp_loss,
      {.inputs = mlp_inputs(), .optimizer = optim::SGD{}, .ema_decay = 0.5, .device = {"cpu"}});
  for (int step = 0; step < 3; ++step) {
    const HostTensor x = made_up({16, 64}, step), t = indices({16}, 10);
    trainer.step({{"x", x}, {"t", t}});
  }
  const auto scores = [](const Mlp& net, const Inputs& in) {
    const Tensor logits = net.out(dropout(relu(net.hidden(in["pixels"])), 0.5));
    const Tensor best = argmax(logits, 1);
    return std::map<std::string, Tensor>{
        {"scores", softmax(logits)}, {"best", best}, {"sure", max(logits, 1) > 0.1}};
  };
  const std::map<std::string, HostTensor> inputs = {{"pixels", made_up({3, 64})}};
  check("trained", trainer.attach(scores, {.inputs = {{"pixels", {3, 64}}}}), inputs);
  check("averaged",
        trainer.attach(scores, {.inputs = {{"pixels", {3, 64}}}, .weights = WeightSource::kEma}),
        inputs);
}

struct Cnn {
  nn::Conv2d first{2, 6, {3, 3}, {.stride = 2, .padding = 1}};
  nn::BatchNorm2d norm{6};
  nn::Conv2d grouped{6, 9, {3, 2}, {.padding = {2, 1}, .dilation = {2, 1}, .groups = 3}};
  nn::ConvTranspose2d back{9, 4, {3, 3}, {.stride = 2, .padding = 1, .output_padding = 1}};
  nn::Linear out{4 * 4 * 4, 5};
  TG_MODULE(first, norm, grouped, back, out)

  Tensor operator()(Tensor x) const {
    x = max_pool2d(relu(norm(first(x))), {3, 3}, {.stride = 2, .padding = 1});
    x = back(silu(grouped(x)));
    x = avg_pool2d(interpolate(x, {16, 16}, Interpolation::kBilinear), {3, 3}, {.padding = 1});
    return out(flatten(narrow(narrow(x, 2, 1, 4), 3, 1, 4), 1));
  }
};

TEST(OnnxModels, cnn_with_running_statistics) {
  const std::vector<InputSpec> inputs = {{"x", {4, 2, 16, 16}}};
  const auto loss = [](const Cnn& net, const Inputs& in) { return mean(square(net(in["x"]))); };
  auto trainer = compile(Cnn{}, loss,
                         {.inputs = inputs, .optimizer = optim::SGD{.lr = 0.1}, .device = {"cpu"}});
  const HostTensor x = made_up({4, 2, 16, 16});
  for (int step = 0; step < 3; ++step) trainer.step({{"x", x}});
  const auto forward = [](const Cnn& net, const Inputs& in) { return net(in["x"]); };
  check("cnn", trainer.attach(forward, {.inputs = inputs}), {{"x", x}});
}

struct Transformer {
  nn::Embedding tokens{11, 16};
  nn::TransformerEncoderLayer first{16, 4, {.dim_feedforward = 32, .gelu = true}};
  nn::TransformerEncoderLayer second{16, 4, {.dim_feedforward = 32, .norm_first = true}};
  nn::LayerNorm norm{16};
  TG_MODULE(tokens, first, second, norm)

  Tensor operator()(Tensor text) const {
    const Tensor x = second(first(tokens(text), {.causal = true}));
    return matmul(norm(x), transpose(tokens.weight));
  }
};

TEST(OnnxModels, transformers) {
  const auto language = [](const LanguageModel& net, const Inputs& in) { return net(in["x"]); };
  const Shape text = {LanguageModel::kBatch, LanguageModel::kLength};
  check("language", compile_function(LanguageModel{}, language, on_cpu({{"x", text, i32}})),
        {{"x", indices(text, LanguageModel::kVocab)}});
  const auto forward = [](const Transformer& net, const Inputs& in) {
    return checkpoint([&](const std::vector<Tensor>& x) { return net(x[0]); }, {in["text"]});
  };
  check("transformer", compile_function(Transformer{}, forward, on_cpu({{"text", {2, 7}, i32}})),
        {{"text", indices({2, 7}, 11)}});
}

struct Recurrences {
  nn::LSTM lstm{5, 6, {.num_layers = 2, .batch_first = true}};
  nn::GRU gru{6, 4, {.batch_first = true}};
  TG_MODULE(lstm, gru)
};

TEST(OnnxModels, lstm_and_gru) {
  const auto forward = [](const Recurrences& net, const Inputs& in) {
    const auto [output, h, c] = net.lstm(in["x"], in["h"]);
    return std::map<std::string, Tensor>{{"y", net.gru(output).output}, {"c", c}};
  };
  check("recurrent",
        compile_function(Recurrences{}, forward, on_cpu({{"x", {3, 6, 5}}, {"h", {2, 3, 6}}})),
        {{"x", made_up({3, 6, 5})}, {"h", made_up({2, 3, 6}, 1)}});
}

struct Odd {
  Parameter weight{{3}};
  Buffer shift{{3}, 0.25};
  TG_MODULE(weight, shift)
};

// Inputs that nobody reads, outputs that nobody computes, one value under two names, u32 in and
// out, numbers that are fixed while it runs.
TEST(OnnxModels, ends_of_all_kinds) {
  const auto forward = [](const Odd& net, const Inputs& in) {
    const Tensor x = in["x"];
    const Tensor turned = custom_gradient(
        {x}, [](const auto& t) { return -t[0]; },
        [](const auto&, Tensor, Tensor dy) { return std::vector<Tensor>{dy}; });
    const Tensor y = turned * net.weight + net.shift.tensor() * scalar("heat", 1.5);
    return std::map<std::string, Tensor>{{"y", y},
                                         {"again", y},
                                         {"same", x},
                                         {"weight of all", net.weight},
                                         {"one", full({2}, 1, i32)},
                                         {"next", in["words"] + 1u},
                                         {"best", topk(x, 2).indices}};
  };
  const std::vector<std::uint32_t> words = {7, 4294967295U};
  check("odd",
        compile_function(Odd{}, forward,
                         on_cpu({{"x", {2, 3}}, {"words", {2}, u32}, {"nobody", {4}, i32}})),
        {{"x", made_up({2, 3})},
         {"words", HostTensor::from({2}, words)},
         {"nobody", indices({4}, 9)}});
}

}  // namespace
}  // namespace tensorgrad::testing
