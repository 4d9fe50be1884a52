// SPDX-License-Identifier: MIT
// Training steps: with the loss awaited at each step, and with many steps in a go over data that
// lie on the device.
#include "workloads.h"
#include "steps.h"

#include <cmath>
#include <random>

#include <tensorgrad/tensorgrad.h>

namespace tensorgrad::bench {
namespace {

struct Mlp {
  explicit Mlp(const std::vector<std::int64_t>& sizes) {
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) layers.emplace_back(sizes[i], sizes[i + 1]);
  }
  std::vector<nn::Linear> layers;
  TG_MODULE(layers)
  Tensor operator()(Tensor x) const {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      x = layers[i](x);
      if (i + 1 < layers.size()) x = relu(x);
    }
    return x;
  }
};

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> draw(0, 1);
  std::vector<float> values(count);
  for (float& value : values) value = draw(random);
  return values;
}

// Ten classes; `row` is the shape of an image.
template <class Model>
void classifier(const Options& options, const std::string& device, const std::string& name,
                const Model& model, std::int64_t batch, const Shape& row) {
  constexpr std::int64_t kRows = 16384;
  const auto loss = [](const Model& net, const Inputs& in) {
    return cross_entropy(net(in["x"]), in["y"]);
  };
  const auto images = [&](std::int64_t count) {
    Shape shape = row;
    shape.insert(shape.begin(), count);
    return shape;
  };
  std::vector<std::int32_t> labels(kRows);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  CompileOptions spec;
  spec.optimizer = optim::AdamW{.lr = 1e-3};
  spec.device = device_options(options, device);
  spec.inputs = {{"x", images(batch)}, {"y", {batch}, i32}};
  {
    auto trainer = compile(model, loss, spec);
    const std::vector<float> x = random_floats(static_cast<std::size_t>(numel(images(batch))));
    const std::vector<std::int32_t> y(labels.begin(), labels.begin() + batch);
    const double us =
        median_microseconds(options.seconds, 1, [&] { trainer.step({{"x", x}, {"y", y}}); });
    report(name, "step", trainer, us);
  }
  spec.dataset = {{"x", images(kRows)}, {"y", {kRows}, i32}};
  spec.inputs.clear();
  spec.batch = batch;
  auto trainer = compile(model, loss, spec);
  trainer.upload_data("x", random_floats(static_cast<std::size_t>(numel(images(kRows)))));
  trainer.upload_data("y", labels);
  in_a_go(options, name, trainer);
}

}  // namespace

std::vector<std::string> default_devices() {
  std::string note;
  for (const DeviceDescription& each : devices({}, note)) {
    if (each.kind == "webgpu" && each.chosen_by_auto) return {"cpu", "webgpu"};
  }
  return {"cpu"};
}

void mlp_sin(const Options& options, const std::string& device) {
  const std::vector<float> x = random_floats(256), y = random_floats(256);
  const auto loss = [](const Mlp& net, const Inputs& in) { return mse(net(in["x"]), in["y"]); };
  const Mlp model({1, 64, 64, 1});
  CompileOptions spec;
  spec.optimizer = optim::Adam{.lr = 1e-3};
  spec.device = device_options(options, device);
  spec.inputs = {{"x", {256, 1}}, {"y", {256, 1}}};
  {
    auto trainer = compile(model, loss, spec);
    const double us =
        median_microseconds(options.seconds, 1, [&] { trainer.step({{"x", x}, {"y", y}}); });
    report("mlp-sin", "step", trainer, us);
  }
  spec.dataset = std::move(spec.inputs);
  spec.inputs.clear();
  for (InputSpec& entry : spec.dataset) entry.shape = {1 << 16, 1};
  spec.batch = 256;
  auto trainer = compile(model, loss, spec);
  const std::vector<float> many = random_floats(1 << 16);
  trainer.upload_data("x", many);
  trainer.upload_data("y", many);
  in_a_go(options, "mlp-sin", trainer);
}

void fashion_mlp(const Options& options, const std::string& device) {
  classifier(options, device, "fashion-mlp", Mlp({784, 256, 128, 10}), 128, {784});
}

void fashion_cnn(const Options& options, const std::string& device) {
  const nn::Sequential model(nn::Conv2d(1, 16, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                             nn::Conv2d(16, 32, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                             nn::Flatten(), nn::Linear(1568, 64), nn::ReLU(), nn::Linear(64, 10));
  classifier(options, device, "fashion-cnn", model, 64, {1, 28, 28});
}

}  // namespace tensorgrad::bench
