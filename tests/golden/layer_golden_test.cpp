// SPDX-License-Identifier: MIT
// Compares layers with PyTorch (make_layer_fixtures.py): names of parameters, values, and the
// gradients of sum(result * w) with respect to every parameter, on the CPU and on WebGPU.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/fixture.h"

namespace tensorgrad::testing {
namespace {

const Fixture& layers_fixture() {
  static const Fixture file("layers.safetensors");
  return file;
}

template <class Layer>
struct Model {
  Layer layer;
  TG_MODULE(layer)
};

void expect_near(const std::vector<float>& got, const std::vector<float>& want, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << what << ", element " << i;
  }
}

std::map<std::string, HostTensor> in_a_model(const std::map<std::string, HostTensor>& tensors) {
  std::map<std::string, HostTensor> named;
  for (const auto& [name, tensor] : tensors) named["layer." + name] = tensor;
  return named;
}

// Compares `apply(layer, inputs)` and its gradients with the fixture `name`. Returns the trainer
// after one step.
template <class Layer, class Apply>
Trainer<Model<Layer>> check_layer(const std::string& name, const Layer& layer, Apply apply,
                                  const std::string& device) {
  const double tolerance = device == "cpu" ? 3e-5 : 1e-4;
  const std::map<std::string, HostTensor> given = layers_fixture().all_of(name + "/in/");
  std::vector<InputSpec> specs;
  FeedView feed;
  for (const auto& [key, tensor] : given) {
    specs.push_back({key, tensor.shape, tensor.dtype});
    feed.add(key, HostView(tensor.dtype, tensor.bytes.data(),
                           static_cast<std::size_t>(numel(tensor.shape))));
  }
  const auto result = [apply](const Model<Layer>& model, const Inputs& in) {
    return apply(model.layer, in);
  };
  const auto loss = [result](const Model<Layer>& model, const Inputs& in) {
    const Tensor y = result(model, in);
    return sum(y * weights_like(y));
  };
  const DeviceOptions where{.kind = device, .allow_software = true};
  auto trainer = compile(Model<Layer>{layer}, loss,
                         {.inputs = specs, .optimizer = optim::SGD{.lr = 0.1}, .device = where});
  const auto parameters = layers_fixture().all_of(name + "/param/");
  trainer.upload_params(in_a_model(parameters));
  auto forward = trainer.attach(result, {.inputs = specs, .training = true});
  expect_near(forward(feed).floats(), layers_fixture().values<float>(name + "/out"), tolerance,
              name);
  trainer.upload_params(in_a_model(parameters));
  trainer.step(feed);
  for (const auto& [key, tensor] : in_a_model(layers_fixture().all_of(name + "/grad/")))
    expect_near(trainer.download_grads().at(key).floats(), tensor.floats(), 2 * tolerance, key);
  return trainer;
}

Tensor flat(const std::vector<Tensor>& parts) {
  std::vector<Tensor> vectors;
  for (const Tensor& part : parts) vectors.push_back(reshape(part, {-1}));
  return concat(vectors);
}

void check_norms(const std::string& device) {
  const auto plain = [](const auto& layer, const Inputs& in) { return layer(in["input"]); };
  check_layer("layer_norm", nn::LayerNorm(Shape{3, 2}), plain, device);
  check_layer("rms_norm", nn::RMSNorm(2, 0x1p-52), plain, device);  // epsilon of doubles
  check_layer("group_norm", nn::GroupNorm(3, 6), plain, device);
  check_layer("instance_norm", nn::InstanceNorm2d(6, 1e-5, true), plain, device);
  check_layer("prelu", nn::PReLU(6), plain, device);
}

TEST(Layer, norms_on_cpu) { check_norms("cpu"); }
TEST(Layer, norms_on_webgpu) { check_norms("webgpu"); }

// Runs one training step, then compares the result that uses the running statistics.
void check_batch_norm(const std::string& device) {
  using Net = Model<nn::BatchNorm2d>;
  const std::string name = "batch_norm";
  const std::vector<InputSpec> specs = {{"input", layers_fixture().shape(name + "/in/input")}};
  const DeviceOptions where{.kind = device, .allow_software = true};
  auto trainer = compile(Net{nn::BatchNorm2d(6)},
                         [](const Net& net, const Inputs& in) {
                           const Tensor y = net.layer(in["input"]);
                           return sum(y * weights_like(y));
                         },
                         {.inputs = specs, .optimizer = optim::SGD{.lr = 0.1}, .device = where});
  const auto parameters = in_a_model(layers_fixture().all_of(name + "/param/"));
  trainer.upload_params(parameters);
  const std::vector<float> x = layers_fixture().values<float>(name + "/in/input");
  trainer.step({{"input", x}});
  for (const auto& [key, tensor] : in_a_model(layers_fixture().all_of(name + "/grad/")))
    expect_near(trainer.download_grads().at(key).floats(), tensor.floats(), 1e-4, key);
  trainer.upload_params(parameters);
  auto in_use = trainer.attach(
      [](const Net& net, const Inputs& in) {
        return std::map<std::string, Tensor>{{"y", net.layer(in["input"])},
                                             {"mean", net.layer.running_mean->tensor()},
                                             {"var", net.layer.running_var->tensor()}};
      },
      {.inputs = specs});
  for (int run = 0; run < 2; ++run) {  // evaluation changes nothing
    const NamedTensors outputs = in_use.run({{"input", x}});
    const std::string buffer = name + "/buffer/running_";
    expect_near(outputs.at("mean").floats(), layers_fixture().values<float>(buffer + "mean"), 1e-5,
                "mean");
    expect_near(outputs.at("var").floats(), layers_fixture().values<float>(buffer + "var"), 1e-5,
                "var");
    expect_near(outputs.at("y").floats(), layers_fixture().values<float>(name + "/eval"), 3e-5,
                "in use");
  }
}

TEST(Layer, batch_norm_on_cpu) { check_batch_norm("cpu"); }
TEST(Layer, batch_norm_on_webgpu) { check_batch_norm("webgpu"); }

void check_attention(const std::string& device) {
  check_layer(
      "attention", nn::MultiheadAttention(8, 2),
      [](const auto& layer, const Inputs& in) { return layer(in["query"]); }, device);
  check_layer(
      "attention_causal", nn::MultiheadAttention(8, 4, {.bias = false}),
      [](const auto& layer, const Inputs& in) { return layer(in["query"], {.causal = true}); },
      device);
  check_layer(
      "attention_padded", nn::MultiheadAttention(8, 2),
      [](const auto& layer, const Inputs& in) {
        return layer(in["query"], in["key"], in["key"] * 0.5,
                     {.key_padding_mask = ne(in["padding"], 0)});
      },
      device);
  const auto with_weights = [](bool average, bool padded) {
    return [=](const auto& layer, const Inputs& in) {
      nn::MaskOptions masks;
      if (padded) masks.key_padding_mask = ne(in["padding"], 0);
      const auto [y, weights] =
          layer.with_weights(in["query"], in["key"], in["value"], masks, average);
      return flat({y, weights});
    };
  };
  check_layer("attention_of_widths", nn::MultiheadAttention(8, 2, {.kdim = 6, .vdim = 3}),
              with_weights(true, false), device);
  const nn::MultiheadAttention rows(
      8, 4, {.kdim = 6, .vdim = 3, .add_bias_kv = true, .add_zero_attn = true});
  check_layer("attention_with_rows", rows, with_weights(false, true), device);
  // The result is the same without the weights.
  check_layer(
      "attention_with_rows", rows,
      [](const auto& layer, const Inputs& in) {
        const nn::MaskOptions masks{.key_padding_mask = ne(in["padding"], 0)};
        const Tensor y = layer(in["query"], in["key"], in["value"], masks);
        const auto all = layer.with_weights(in["query"], in["key"], in["value"], masks, false);
        return flat({y, all.weights});
      },
      device);
  check_layer(
      "attention_causal_with_rows",
      nn::MultiheadAttention(8, 2, {.bias = false, .add_bias_kv = true}),
      [](const auto& layer, const Inputs& in) { return layer(in["query"], {.causal = true}); },
      device);
  check_layer(
      "attention_unbatched", nn::MultiheadAttention(8, 2, {.add_zero_attn = true}),
      [](const auto& layer, const Inputs& in) {
        const auto [y, weights] = layer.with_weights(in["query"], in["query"], in["query"]);
        return flat({y, weights});
      },
      device);
}

TEST(Layer, attention_on_cpu) { check_attention("cpu"); }
TEST(Layer, attention_on_webgpu) { check_attention("webgpu"); }

void check_transformers(const std::string& device) {
  for (const bool first : {false, true}) {
    nn::TransformerOptions options{.dim_feedforward = 12, .dropout = 0, .norm_first = first};
    const std::string when = first ? "first" : "after";
    check_layer(
        "decoder_" + when, nn::TransformerDecoderLayer(8, 2, options),
        [](const auto& layer, const Inputs& in) {
          return layer(in["tgt"], in["memory"], {.causal = true});
        },
        device);
    options.gelu = first;
    check_layer(
        "encoder_" + when, nn::TransformerEncoderLayer(8, 2, options),
        [](const auto& layer, const Inputs& in) { return layer(in["src"]); }, device);
  }
}

TEST(Layer, transformers_on_cpu) { check_transformers("cpu"); }
TEST(Layer, transformers_on_webgpu) { check_transformers("webgpu"); }

void check_recurrent(const std::string& device) {
  check_layer(
      "lstm", nn::LSTM(3, 4, {.num_layers = 2}),
      [](const auto& layer, const Inputs& in) {
        const auto [y, h, c] = layer(in["x"]);
        return flat({y, h, c});
      },
      device);
  check_layer(
      "lstm_from", nn::LSTM(3, 4, {.bias = false, .batch_first = true}),
      [](const auto& layer, const Inputs& in) {
        const auto [y, h, c] = layer(in["x"], in["h"], in["c"]);
        return flat({y, h, c});
      },
      device);
  check_layer(
      "gru", nn::GRU(3, 4, {.num_layers = 2, .batch_first = true}),
      [](const auto& layer, const Inputs& in) {
        const auto [y, h] = layer(in["x"]);
        return flat({y, h});
      },
      device);
  check_layer(
      "gru_from", nn::GRU(3, 4),
      [](const auto& layer, const Inputs& in) {
        const auto [y, h] = layer(in["x"], in["h"]);
        return flat({y, h});
      },
      device);
}

void check_both_ways(const std::string& device) {
  check_layer(
      "lstm_both_ways", nn::LSTM(3, 4, {.num_layers = 2, .bidirectional = true}),
      [](const auto& layer, const Inputs& in) {
        const auto [y, h, c] = layer(in["x"]);
        return flat({y, h, c});
      },
      device);
  check_layer(
      "lstm_both_ways_from",
      nn::LSTM(3, 4, {.bias = false, .batch_first = true, .bidirectional = true}),
      [](const auto& layer, const Inputs& in) {
        const auto [y, h, c] = layer(in["x"], in["h"], in["c"]);
        return flat({y, h, c});
      },
      device);
  check_layer(
      "gru_both_ways", nn::GRU(3, 4, {.num_layers = 2, .batch_first = true, .bidirectional = true}),
      [](const auto& layer, const Inputs& in) {
        const auto [y, h] = layer(in["x"]);
        return flat({y, h});
      },
      device);
  check_layer(
      "gru_unbatched", nn::GRU(3, 4, {.bidirectional = true}),
      [](const auto& layer, const Inputs& in) {
        const auto [y, h] = layer(in["x"], in["h"]);
        return flat({y, h});
      },
      device);
}

TEST(Layer, recurrent_both_ways_on_cpu) { check_both_ways("cpu"); }
TEST(Layer, recurrent_both_ways_on_webgpu) { check_both_ways("webgpu"); }
TEST(Layer, recurrent_on_cpu) { check_recurrent("cpu"); }
TEST(Layer, recurrent_on_webgpu) { check_recurrent("webgpu"); }

}  // namespace
}  // namespace tensorgrad::testing
