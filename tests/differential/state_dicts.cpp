// SPDX-License-Identifier: MIT
// Trains models of all layers that PyTorch has too, and writes for each NAME.safetensors, the
// weights, and NAME.run.safetensors, inputs and the outputs of inference for them:
// state_dicts FOLDER. check_state_dicts.py loads them into the models of PyTorch.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tg = tensorgrad;
namespace nn = tensorgrad::nn;

namespace {

struct Pictures {
  nn::Sequential body{nn::Conv2d(3, 4, 3, {.padding = 1}), nn::BatchNorm2d(4), nn::PReLU(4),
                      nn::MaxPool2d(2), nn::ConvTranspose2d(4, 6, 3, {.stride = 2})};
  nn::GroupNorm group{3, 6};
  nn::InstanceNorm instance{6, 1e-5, true};
  nn::Linear out{6, 2};
  TG_MODULE(body, group, instance, out)
  tg::Tensor operator()(tg::Tensor x) const {
    return out(mean(gelu(instance(group(body(x)))), {2, 3}));
  }
};

struct Signals {
  nn::Conv1d first{2, 4, 3};
  nn::BatchNorm1d norm{4};
  nn::ConvTranspose1d up{4, 4, 2};
  nn::LSTM lstm{4, 3, {.num_layers = 2, .batch_first = true, .bidirectional = true}};
  nn::GRU gru{6, 5, {.batch_first = true}};
  TG_MODULE(first, norm, up, lstm, gru)
  tg::Tensor operator()(tg::Tensor x) const {
    return gru(lstm(transpose(up(relu(norm(first(x)))), 1, 2)).output).output;
  }
};

struct Texts {
  nn::Embedding tokens{11, 8};
  std::vector<nn::TransformerEncoderLayer> encoder{
      2, nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 12, .gelu = true})};
  nn::TransformerDecoderLayer decoder{8, 2, {.dim_feedforward = 12, .norm_first = true}};
  nn::MultiheadAttention attention{8, 4, {.bias = false, .kdim = 8, .vdim = 8}};
  nn::MultiheadAttention other{8, 2, {.add_bias_kv = true}};
  nn::LayerNorm layer{8};
  nn::RMSNorm rms{8};
  nn::Linear head{8, 11, false};
  TG_MODULE(tokens, encoder, decoder, attention, other, layer, rms, head)
  tg::Tensor operator()(tg::Tensor x) const {
    x = tokens(x);
    tg::Tensor memory = x;
    for (const auto& each : encoder) memory = each(memory);
    x = decoder(x, memory);
    return head(rms(layer(attention(x) + other(x))));
  }
};

std::vector<float> wave(const tg::Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(tg::numel(shape)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(0.7F * static_cast<float>(i)) + 0.3F;
  return values;
}

template <class Model>
void write(const std::string& folder, const std::string& name, const tg::InputSpec& input) {
  tg::HostTensor x = tg::HostTensor::from(input.shape, wave(input.shape));
  if (input.dtype == tg::i32) {
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < x.bytes.size() / 4; ++i)
      ids.push_back(static_cast<int>(i * 5 % 11));
    x = tg::HostTensor::from(input.shape, ids);
  }
  auto trainer = tg::compile(
      Model{},
      [](const Model& model, const tg::Inputs& in) { return mean(square(model(in["x"]) - 1)); },
      {.inputs = {input}, .optimizer = tg::optim::AdamW{.lr = 0.03}, .device = {.kind = "cpu"}});
  for (int i = 0; i < 5; ++i) trainer.step({{"x", x}});
  trainer.save_weights(folder + "/" + name + ".safetensors");
  auto infer = trainer.attach(
      [](const Model& model, const tg::Inputs& in) { return model(in["x"]); }, {.inputs = {input}});
  tg::StoredFile run;
  const tg::HostTensor y = infer({{"x", x}});
  run.tensors["x"] = {input.dtype == tg::i32 ? "I32" : "F32", x.shape, x.bytes};
  run.tensors["y"] = {"F32", y.shape, y.bytes};
  tg::write_safetensors(folder + "/" + name + ".run.safetensors", run);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw tg::UserError("usage: state_dicts FOLDER");
  write<Pictures>(argv[1], "pictures", {"x", {4, 3, 8, 8}});
  write<Signals>(argv[1], "signals", {"x", {3, 2, 9}});
  write<Texts>(argv[1], "texts", {"x", {3, 7}, tg::i32});
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
