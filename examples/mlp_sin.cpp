// SPDX-License-Identifier: MIT
// Fits y = sin(x) with a small network: fresh points at every step, mean squared error, Adam.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <random>
#include <vector>

#include <tensorgrad/tensorgrad.h>

namespace tg = tensorgrad;

struct Mlp {
  tg::nn::Linear in{1, 64}, mid{64, 64}, out{64, 1};
  TG_MODULE(in, mid, out)
  tg::Tensor operator()(tg::Tensor x) const { return out(relu(mid(relu(in(x))))); }
};

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 2000;
  tg::DeviceOptions device;
  if (argc > 2) device.kind = argv[2];
  device.allow_software = argc > 3;  // any third word: a software rasteriser will do
  try {
    auto loss = [](const Mlp& net, const tg::Inputs& in) { return mse(net(in["x"]), in["y"]); };
    auto trainer =
        tg::compile(Mlp{}, loss,
                    {.inputs = {{"x", {256, 1}}, {"y", {256, 1}}},
                     .optimizer = tg::optim::Adam{.lr = tg::Schedule::cosine(5e-3, 1e-4, steps)},
                     .device = device});
    std::printf("%s\n", trainer.device().c_str());
    std::mt19937 random(1);
    std::uniform_real_distribution<float> draw(-std::numbers::pi_v<float>,
                                               std::numbers::pi_v<float>);
    std::vector<float> x(256), y(256);
    float last = 0;
    for (int step = 0; step < steps; ++step) {
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = std::sin(x[i] = draw(random));
      last = trainer.step({{"x", x}, {"y", y}}).loss;
      if (step % 200 == 0) std::printf("step %5d  loss %.6f\n", step, last);
    }
    auto predict = trainer.attach([](const Mlp& net, const tg::Inputs& in) { return net(in["x"]); },
                                  {.inputs = {{"x", {5, 1}}}});
    const std::vector<float> points = {-3, -1.5F, 0, 1.5F, 3};
    const std::vector<float> values = predict({{"x", points}}).floats();
    for (std::size_t i = 0; i < points.size(); ++i) {
      std::printf("sin(%5.2f) = %7.4f   network %7.4f\n", points[i], std::sin(points[i]),
                  values[i]);
    }
    std::printf("loss %.6f after %d steps\n", last, steps);
    return 0;
  } catch (const tg::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
