// SPDX-License-Identifier: MIT
// export_models FOLDER: exports small models for pages. Each has the inputs and results of a few
// runs on the CPU (runs.json), which runner_test.mjs compares with those in the browser.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/models.h"
#include "support/small_mamba.h"

namespace tensorgrad::testing {
namespace {

using Json = nlohmann::json;
using Outputs = std::map<std::string, Tensor>;

Json to_json(const HostTensor& tensor) {
  Json json = {{"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}};
  if (tensor.dtype == f32 || tensor.dtype == f16) {
    json["data"] = tensor.floats();
  } else {
    json["data"] = tensor.ints();
  }
  return json;
}

// Exports a function before its first run, then runs it and records the results.
void write_model(const std::string& folder, CompiledFunction function,
                 const std::vector<NamedTensors>& runs, const WebOptions& options = {}) {
  function.export_web(folder, options);
  Json all = Json::array();
  for (const NamedTensors& inputs : runs) {
    Json run = {{"inputs", Json::object()}, {"outputs", Json::object()}};
    Feed feed;
    for (const auto& [name, tensor] : inputs) {
      run["inputs"][name] = to_json(tensor);
      feed.add(name, HostView(tensor));
    }
    for (const auto& [name, tensor] : function.run(feed)) run["outputs"][name] = to_json(tensor);
    all.push_back(run);
  }
  std::ofstream(std::filesystem::path(folder) / "runs.json") << all;
}

// Returns varied values of about unit size.
HostTensor values(const Shape& shape, int seed) {
  std::vector<float> v(static_cast<std::size_t>(numel(shape)));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(seed) * 101) % 61) / 30 - 1;
  return HostTensor::from(shape, v);
}

// Exports from a trainer, so that the parameters are trained, with a size per batch.
void export_mlp(const std::string& folder) {
  auto trainer =
      compile(Mlp{}, mlp_loss,
              {.inputs = mlp_inputs(), .optimizer = optim::Adam{}, .device = {.kind = "cpu"}});
  const HostTensor targets = HostTensor::from(
      {16}, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5});
  for (int step = 0; step < 5; ++step)
    trainer.step({{"x", values({16, 64}, step)}, {"t", targets}});
  const auto predict = [](const Mlp& net, const Inputs& in) {
    const Tensor logits = net.out(relu(net.hidden(in["pixels"])));
    return Outputs{
        {"probs", softmax(logits)}, {"best", argmax(logits, 1)}, {"sure", max(logits, 1) > 0.0}};
  };
  write_model(folder, trainer.attach(predict, {.inputs = {{"pixels", {kDynamic, 64}}}}),
              {{{"pixels", values({1, 64}, 7)}},
               {{"pixels", values({5, 64}, 8)}},
               {{"pixels", values({1, 64}, 9)}}},
              {.name = "mlp", .sizes = {1, 5}});
}

struct Cnn {
  nn::Conv2d first{1, 4, {3, 3}, {.padding = 1}};
  nn::BatchNorm2d norm{4};
  nn::Conv2d second{4, 6, {3, 3}, {.stride = 2}};
  nn::Linear out{6 * 1 * 1, 3};
  TG_MODULE(first, norm, second, out)

  Tensor operator()(Tensor x) const {
    x = max_pool2d(relu(norm(first(x))), {2, 2});
    return out(flatten(relu(second(x)), 1));
  }
};

void export_cnn(const std::string& folder) {
  write_model(
      folder,
      compile_function(
          Cnn{},
          [](const Cnn& net, const Inputs& in) { return Outputs{{"scores", net(in["image"])}}; },
          {.inputs = {{"image", {2, 1, 8, 8}}}, .device = {.kind = "cpu"}, .seed = 3}),
      {{{"image", values({2, 1, 8, 8}, 1)}}, {{"image", values({2, 1, 8, 8}, 2)}}},
      {.name = "cnn"});
}

struct Encoder {
  nn::Embedding tokens{9, 16};
  nn::TransformerEncoderLayer layer{16, 2, {.dim_feedforward = 24, .dropout = 0}};
  nn::Linear out{16, 9};
  TG_MODULE(tokens, layer, out)
};

void export_attention(const std::string& folder) {
  const auto text = [](const std::vector<std::int32_t>& tokens) {
    return NamedTensors{{"text", HostTensor::from({2, 6}, tokens)}};
  };
  write_model(
      folder,
      compile_function(Encoder{},
                       [](const Encoder& net, const Inputs& in) {
                         const Tensor x = net.layer(net.tokens(in["text"]));
                         return Outputs{{"next", softmax(net.out(x))}};
                       },
                       {.inputs = {{"text", {2, 6}, i32}}, .device = {.kind = "cpu"}, .seed = 2}),
      {text({0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2}), text({8, 8, 8, 1, 1, 1, 3, 5, 7, 2, 4, 6})},
      {.name = "attention"});
}

// Mamba, attention and an MLP, with states that are passed from chunk to chunk.
void export_language_model(const std::string& folder) {
  const auto chunk = [](const std::vector<std::int32_t>& tokens, float keep) {
    const Shape shape = {1, static_cast<std::int64_t>(tokens.size())};
    return NamedTensors{{"tokens", HostTensor::from(shape, tokens)},
                        {"keep", HostTensor::from({1}, std::vector<float>{keep})}};
  };
  const nn::LanguageModelConfig config =
      small_mamba(11, {nn::MixerKind::kMamba1, nn::MixerKind::kAttention, nn::MixerKind::kMlp}, 16);
  write_model(
      folder,
      compile_function(nn::LanguageModel(config),
                       [](const nn::LanguageModel& net, const Inputs& in) {
                         return Outputs{{"logits", net.resume_last(in["tokens"], in["keep"])}};
                       },
                       {.inputs = {{"tokens", {1, kDynamic}, i32}, {"keep", {1}}},
                        .device = {.kind = "cpu"},
                        .seed = 4}),
      {chunk({3, 1, 4, 1}, 0), chunk({5}, 1), chunk({9}, 1), chunk({2, 6, 5, 3}, 1), chunk({5}, 0)},
      {.name = "language model", .sizes = {4, 1}});
}

struct Nothing {
  TG_MODULE()
};

// Random numbers, a state that is not a parameter, and a custom kernel.
void export_random(const std::string& folder) {
  const CustomOp twice({
      .name = "twice",
      .infer = [](const std::vector<TensorType>& in) { return in[0]; },
      .cpu =
          [](const CustomCall& call) {
            for (std::int64_t i = call.first; i < call.last; ++i)
              call.result()[static_cast<std::size_t>(i)] =
                  2 * call.floats(0)[static_cast<std::size_t>(i)];
          },
      .wgsl =
          [](const std::vector<TensorType>&) {
            return "fn element(i: u32) -> f32 { return 2.0 * in0(i); }";
          },
  });
  write_model(folder,
              compile_function(Nothing{},
                               [twice](const Nothing&, const Inputs& in) {
                                 const Tensor runs = state("runs", {}, 10);
                                 set_state("runs", runs + 1.0);
                                 const Tensor noise = rand({4});
                                 return Outputs{{"noise", noise},
                                                {"sum", twice({in["x"]}) + noise + runs}};
                               },
                               {.inputs = {{"x", {4}}}, .device = {.kind = "cpu"}, .seed = 6}),
              std::vector<NamedTensors>(3, {{"x", values({4}, 1)}}), {.name = "random"});
}

// Elements without a JavaScript array type, or that must be rounded.
void export_types(const std::string& folder) {
  const HostTensor words = HostTensor::from({3}, std::vector<std::uint32_t>{4000000001U, 2, 7});
  const HostTensor halves = HostTensor::from({3}, std::vector<float>{0.1F, 3000.7F, -1e-7F});
  write_model(folder,
              compile_function(Nothing{},
                               [](const Nothing&, const Inputs& in) {
                                 return Outputs{{"odd", bitwise_and(in["words"], 1u)},
                                                {"some", in["halves"] > 0.05},
                                                {"scaled", in["halves"] * 1.1}};
                               },
                               {.inputs = {{"words", {3}, u32}, {"halves", {3}, f16}},
                                .device = {.kind = "cpu"}}),
              {{{"words", words}, {"halves", halves}}}, {.name = "types"});
}

// Requires a feature that software GPUs lack.
void export_half(const std::string& folder) {
  write_model(
      folder,
      compile_function(
          Mlp{},
          [](const Mlp& net, const Inputs& in) { return Outputs{{"y", net.hidden(in["x"])}}; },
          {.inputs = {{"x", {1, 64}}}, .device = {.kind = "cpu"}, .mixed_precision = true}),
      {{{"x", values({1, 64}, 1)}}}, {.name = "half", .f16 = true});
}

}  // namespace
}  // namespace tensorgrad::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: export_models FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  namespace t = tensorgrad::testing;
  t::export_mlp(folder + "/mlp");
  t::export_cnn(folder + "/cnn");
  t::export_attention(folder + "/attention");
  t::export_language_model(folder + "/language_model");
  t::export_random(folder + "/random");
  t::export_types(folder + "/types");
  t::export_half(folder + "/half");
  return 0;
}
