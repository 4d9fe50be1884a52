// SPDX-License-Identifier: MIT
// Trains a classifier of points, saves it, and loads it into a function for any number of points.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include <tensorgrad/tensorgrad.h>

namespace tg = tensorgrad;

struct Net {
  tg::nn::Linear hidden{2, 32}, out{32, 2};
  TG_MODULE(hidden, out)  // field names become parameter names: hidden.weight, ...
  tg::Tensor operator()(tg::Tensor x) const { return out(tanh(hidden(x))); }
};

int main() {
  try {
    const tg::DeviceOptions device = {.kind = "cpu"};  // "auto": a GPU if there is one

    // Points in a square. Class 1 is inside a circle.
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> points(2 * 1000);
    std::vector<std::int32_t> inside(1000);
    for (float& coordinate : points) coordinate = uniform(random);
    for (std::size_t i = 0; i < inside.size(); ++i)
      inside[i] = std::hypot(points[2 * i], points[2 * i + 1]) < 0.7F ? 1 : 0;

    auto loss = [](const Net& net, const tg::Inputs& in) {
      return cross_entropy(net(in["points"]), in["inside"]);
    };
    auto trainer = tg::compile(
        Net{}, loss,
        {.dataset = {{"points", {1000, 2}}, {"inside", {1000}, tg::i32}},  // stays on the device
         .batch = 50,
         .optimizer = tg::optim::AdamW{.lr = 1e-2},
         .device = device});
    trainer.upload_data("points", points);
    trainer.upload_data("inside", inside);
    for (int epoch = 1; epoch <= 15; ++epoch)
      std::printf("epoch %d: loss %.4f\n", epoch, static_cast<double>(trainer.run(20).back()));
    trainer.save("circle.safetensors");

    auto predict = tg::compile_function(
        Net{}, [](const Net& net, const tg::Inputs& in) { return argmax(net(in["points"]), -1); },
        {.inputs = {{"points", {tg::kDynamic, 2}}}, .device = device});
    predict.load_params("circle.safetensors");
    const auto classes =
        predict({{"points", std::vector<float>{0, 0, 0.3F, 0.2F, 0.9F, -0.9F}}}).ints();
    std::printf("classes of three points: %d %d %d\n", classes[0], classes[1], classes[2]);
    return classes == std::vector<std::int32_t>{1, 1, 0} ? 0 : 1;
  } catch (const tg::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
