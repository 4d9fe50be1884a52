// SPDX-License-Identifier: MIT
// Whole models, exported by the public functions: onnxruntime returns the same results.
#include <gtest/gtest.h>

#include "onnx/made_up.h"
#include "support/models.h"
#include "support/onnxruntime.h"

namespace tensorgrad::testing {
namespace {

// Exports the function and compares its results with those of onnxruntime.
void check(const std::string& name, CompiledFunction forward,
           const std::map<std::string, HostTensor>& inputs) {
  OnnxRuntime runtime(name);
  forward.export_onnx(runtime.path(name), {.name = name, .doc = "What a test makes."});
  FeedView feed;
  for (const auto& [key, tensor] : inputs) feed.add(key, HostView(tensor));
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

// Unused inputs, outputs that need no computation, one value under two names, u32 inputs and
// outputs, and scalars that are constant in the file.
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

// An f16 buffer is stored as FLOAT16 in the file.
struct Halves {
  Buffer half{{4}, 0.3, f16};
  Parameter weight{{4}};
  TG_MODULE(half, weight)
};

TEST(OnnxModels, BuffersOfF16) {
  const auto forward = [](const Halves& net, const Inputs& in) {
    return (in["x"] + cast(net.half.tensor(), f32)) * net.weight;
  };
  check("halves", compile_function(Halves{}, forward, on_cpu({{"x", {4}}})), {{"x", made_up({4})}});
}

// f16 weights are read as such, bf16 weights as the bits of 32-bit words.
TEST(OnnxModels, QuantizedLanguageModels) {
  nn::LanguageModelConfig config{.vocab_size = 32, .d_model = 32, .n_layer = 2};
  config.layers = {nn::MixerKind::kMlp, nn::MixerKind::kAttention};
  const auto forward = [](const nn::LanguageModel& net, const Inputs& in) {
    return net(in["tokens"]);
  };
  const FunctionOptions options = on_cpu({{"tokens", {2, 5}, i32}});
  const CompiledFunction plain = compile_function(nn::LanguageModel(config), forward, options);
  const lm::SavedModel model{config, plain.download_params()};
  const HostTensor tokens = indices({2, 5}, 32);
  OnnxRuntime runtime("quantized");
  for (const auto format : {nn::WeightFormat::kF16, nn::WeightFormat::kBf16,
                            nn::WeightFormat::kInt8, nn::WeightFormat::kInt4}) {
    const lm::SavedModel quantized = lm::quantize(model, format);
    auto function = compile_function(nn::LanguageModel(quantized.config), forward, options);
    function.upload_params(quantized.weights);
    const std::string name(nn::to_string(format));
    function.export_onnx(runtime.path(name));
    runtime.expect(name, {{"tokens", tokens}}, function.run({{"tokens", tokens}}),
                   quantized.weights);
  }
  runtime.check();
}

// Bit patterns of all kinds: zeros, subnormals, infinities and NaN, with both signs.
TEST(OnnxModels, BitsAsFloats) {
  const std::vector<std::uint32_t> words = {0,          1,          0x7fffff,   0x800000,
                                            0x3f800000, 0x7f7fffff, 0x7f800000, 0x7fc00000,
                                            0x80000000, 0x80000001, 0xbf800001, 0xff7fffff,
                                            0xff800000, 0xffc00001, 0x12345678, 0xc0490fdb};
  std::vector<std::int32_t> whole(words.begin(), words.end());
  const auto forward = [](const Inputs& in) {
    return std::map<std::string, Tensor>{{"a", bitcast(in["words"], f32)},
                                         {"b", bitcast(in["whole"], f32)}};
  };
  const Shape shape = {static_cast<std::int64_t>(words.size())};
  check("bits", compile_function(forward, on_cpu({{"words", shape, u32}, {"whole", shape, i32}})),
        {{"words", HostTensor::from(shape, words)}, {"whole", HostTensor::from(shape, whole)}});
}

struct Counter {
  Buffer count{{3}, 0}, half{{2}, 0, f16}, words{{2}, 0, u32};
  TG_MODULE(count, half, words)
};

TEST(OnnxModels, StatesGoInAndOut) {
  const auto forward = [](const Counter& net, const Inputs& in) {
    const Tensor count = net.count.tensor() * 0.5 + in["x"];
    net.count.set(count);
    net.half.set(cast(cast(net.half.tensor(), f32) + narrow(count, 0, 0, 2), f16));
    net.words.set(net.words.tensor() + 4294967295U);
    return std::map<std::string, Tensor>{
        {"y", count * 2}, {"h", cast(net.half.tensor(), f32)}, {"w", net.words.tensor() * 3u}};
  };
  auto function = compile_function(Counter{}, forward, on_cpu({{"x", {3}}}));
  OnnxRuntime runtime("states");
  function.export_onnx(runtime.path("counter"), {.states = true});
  for (int step = 0; step < 3; ++step) {
    const HostTensor x = made_up({3}, step);
    runtime.expect("counter", {{"x", x}}, function.run({{"x", x}}));
  }
  runtime.check();
}

TEST(OnnxModels, MetadataIsInTheFile) {
  auto function =
      compile_function([](const Inputs& in) { return in["x"] + 1; }, on_cpu({{"x", {3}}}));
  const std::string names = "[\"\xC3\x84rger\",\"b\"]";
  std::vector<std::byte> file;
  function.export_onnx(file, {.metadata = {{"class_names", names}}});
  const std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  // StringStringEntryProto: field 1 is the key, field 2 the value.
  const std::string entry = std::string("\x0a\x0b") + "class_names" + "\x12\x0e" + names;
  EXPECT_NE(text.find(entry), std::string::npos);
  EXPECT_THROW(function.export_onnx(file, {.metadata = {{"a", "\xff"}}}), IoError);
}

}  // namespace
}  // namespace tensorgrad::testing
