// SPDX-License-Identifier: MIT
// Trains a classifier of points in a page and uses it. The page stays responsive: a coroutine waits
// for the calls, and main() returns at its first co_await.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <tensorgrad/tensorgrad.h>

namespace tg = tensorgrad;

struct Net {
  tg::nn::Linear hidden{2, 32}, out{32, 2};
  TG_MODULE(hidden, out)
  tg::Tensor operator()(tg::Tensor x) const { return out(tanh(hidden(x))); }
};

tg::Tensor loss(const Net& net, const tg::Inputs& in) {
  return cross_entropy(net(in["points"]), in["inside"]);
}

tg::Future<void> train(std::string device) {
  try {
    // Points in a square. Class 1 is inside a circle.
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> points(2 * 1000);
    std::vector<std::int32_t> inside(1000);
    for (float& coordinate : points) coordinate = uniform(random);
    for (std::size_t i = 0; i < inside.size(); ++i)
      inside[i] = std::hypot(points[2 * i], points[2 * i + 1]) < 0.7F ? 1 : 0;

    tg::CompileOptions options;
    options.dataset = {{"points", {1000, 2}}, {"inside", {1000}, tg::i32}};
    options.batch = 50;
    options.optimizer = tg::optim::AdamW{.lr = 1e-2};
    options.device = {.kind = device, .allow_software = true};
    auto trainer = co_await tg::compile_async(Net{}, loss, options);
    std::printf("device: %s\n", trainer.device().c_str());
    trainer.upload_data("points", points);
    trainer.upload_data("inside", inside);
    for (int epoch = 1; epoch <= 15; ++epoch) {
      const std::vector<float> losses = co_await trainer.run_async(20);
      std::printf("epoch %d: loss %.4f\n", epoch, static_cast<double>(losses.back()));
    }

    auto predict = trainer.attach(
        [](const Net& net, const tg::Inputs& in) { return argmax(net(in["points"]), -1); },
        {.inputs = {{"points", {tg::kDynamic, 2}}}});
    const std::vector<float> three = {0, 0, 0.3F, 0.2F, 0.9F, -0.9F};
    const auto classes = (co_await predict.call_async({{"points", three}})).ints();
    std::printf("classes of three points: %d %d %d\n", classes[0], classes[1], classes[2]);
  } catch (const tg::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

int main(int argc, char** argv) { train(argc > 1 ? argv[1] : "auto"); }
