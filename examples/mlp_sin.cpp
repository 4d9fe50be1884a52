// SPDX-License-Identifier: MIT
// Fits y = sin(x) with a small network: new points at every step, mean squared error, Adam. Draws
// the curve of the network at several steps.
#include <cmath>
#include <numbers>

#include "common/drawing.h"

namespace tg = tensorgrad;

namespace {

struct Mlp {
  tg::nn::Linear in{1, 64}, mid{64, 64}, out{64, 1};
  TG_MODULE(in, mid, out)
  tg::Tensor operator()(tg::Tensor x) const { return out(relu(mid(relu(in(x))))); }
};

bool fit(const sample::Options& options) {
  const int steps = options.steps(2000, 500);
  auto loss = [](const Mlp& net, const tg::Inputs& in) { return mse(net(in["x"]), in["y"]); };
  auto trainer =
      tg::compile(Mlp{}, loss,
                  {.inputs = {{"x", {256, 1}}, {"y", {256, 1}}},
                   .optimizer = tg::optim::Adam{.lr = tg::Schedule::cosine(5e-3, 1e-4, steps)},
                   .device = options.device});
  auto predict = trainer.attach([](const Mlp& net, const tg::Inputs& in) { return net(in["x"]); },
                                {.inputs = {{"x", {601, 1}}}});
  sample::progress(trainer.device(), true);
  std::vector<float> points(601);  // from -3 to 3
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = static_cast<float>(i) / 100 - 3;
  sample::Random random(1);
  std::vector<float> x(256), y(256), values;
  std::vector<sample::Curve> curves;
  for (int step = 0; step <= steps; ++step) {
    if (step == 0 || step == 20 || step == 50 || step == steps) {
      values = predict({{"x", points}}).floats();
      sample::Curve& curve = curves.emplace_back("step " + std::to_string(step), sample::Points{});
      for (std::size_t i = 0; i < points.size(); ++i)
        curve.points.emplace_back(points[i], values[i]);
    }
    if (step == steps) break;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = sample::uniform(random, -std::numbers::pi_v<float>, std::numbers::pi_v<float>);
      y[i] = std::sin(x[i]);
    }
    const float now = trainer.step({{"x", x}, {"y", y}}).loss;
    sample::progress("step " + std::to_string(step) + "  loss " + std::to_string(now));
  }
  double error = 0;
  sample::Curve& sine = curves.emplace_back("sin(x)", sample::Points{});
  for (std::size_t i = 0; i < points.size(); ++i) {
    error += std::pow(values[i] - std::sin(points[i]), 2) / 601;
    sine.points.emplace_back(points[i], std::sin(points[i]));
  }
  sample::save_curves(options, "mlp_sin.svg", "x", curves);
  return sample::at_most(options, "mean squared error", error, 1e-3, 5e-3);
}

}  // namespace

int main(int argc, char** argv) { return sample::run(argc, argv, "Fits a sine.", fit); }
