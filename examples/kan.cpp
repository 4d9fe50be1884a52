// SPDX-License-Identifier: MIT
// A Kolmogorov-Arnold network (Liu et al. 2024) fits sin(pi x): every connection is a curve of its
// own, a sum of cubic B-splines on eight knots, beside a weighted silu.
#include <cmath>
#include <numbers>

#include "common/sample.h"

namespace tg = tensorgrad;

namespace {

constexpr std::int64_t kKnots = 8;

// The eight B-splines at x in [-1, 1]: [..., in] -> [..., in, 8].
tg::Tensor splines(tg::Tensor x) {
  const tg::Tensor knot = tg::arange(kKnots, tg::f32);
  const tg::Tensor u = abs(unsqueeze((x + 1.0) * (0.5 * (kKnots - 1)), -1) - knot);
  const tg::Tensor tail = relu(2.0 - u);
  return where(u < 1.0, 0.5 * u * u * u - u * u + 2.0 / 3, tail * tail * tail / 6.0);
}

struct KanLayer {
  tg::Parameter curves, weight;
  TG_MODULE(curves, weight)

  KanLayer(std::int64_t in, std::int64_t out)
      : curves({out, in * kKnots}, tg::init::normal(0, 0.1)),
        weight({out, in}, tg::init::normal(0, 0.5)) {}

  // [B, in] -> [B, out]
  tg::Tensor operator()(tg::Tensor x) const {
    return linear(flatten(splines(x), -2), curves) + linear(silu(x), weight);
  }
};

struct Kan {
  KanLayer first{1, 4}, second{4, 1};
  TG_MODULE(first, second)
  tg::Tensor operator()(tg::Tensor x) const { return second(first(x)); }
};

bool fit(const sample::Options& options) {
  const int steps = options.steps(4000, 800);
  auto trainer = tg::compile(
      Kan{}, [](const Kan& net, const tg::Inputs& in) { return mse(net(in["x"]), in["y"]); },
      {.inputs = {{"x", {256, 1}}, {"y", {256, 1}}},
       .optimizer = tg::optim::Adam{.lr = tg::Schedule::cosine(1e-2, 1e-4, steps)},
       .device = options.device});
  sample::Random random(2);
  std::vector<float> x(256), y(256);
  double recent = 0;
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = sample::uniform(random, -1, 1);
      y[i] = std::sin(std::numbers::pi_v<float> * x[i]);
    }
    const double now = trainer.step({{"x", x}, {"y", y}}).loss;
    recent = step == 0 ? now : 0.95 * recent + 0.05 * now;
    sample::progress("step " + std::to_string(step) + "  loss " + std::to_string(recent));
  }
  return sample::at_most(options, "loss", recent, 1e-3, 1e-2);
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "A network of splines fits a sine.", fit);
}
