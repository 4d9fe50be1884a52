// SPDX-License-Identifier: MIT
// A Kolmogorov-Arnold network (Liu et al. 2024) fits sin(pi x). Each connection is a curve: a sum
// of cubic B-splines on eight knots, plus a weighted silu. Draws all curves.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/drawing.h"

namespace tg = tensorgrad;

namespace {

constexpr std::int64_t kKnots = 8;

// Returns the eight B-splines at x in [-1, 1]: [..., in] -> [..., in, 8].
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

  // Returns the curve of each connection: [B, in] -> [B, out, in]. The output is their sum over
  // `in`.
  [[nodiscard]] tg::Tensor connections(tg::Tensor x) const {
    const tg::Tensor by_knot =
        unsqueeze(splines(x), 1) * reshape(curves, {-1, weight.shape()[1], kKnots});
    return sum(by_knot, -1) + unsqueeze(silu(x), 1) * weight;
  }
};

struct Kan {
  KanLayer first{1, 4}, second{4, 1};
  TG_MODULE(first, second)
  tg::Tensor operator()(tg::Tensor x) const { return second(first(x)); }
};

// Draws the curves of both layers, each over the range of its input, and the network next to sin(pi
// x).
void draw(const sample::Options& options, tg::Trainer<Kan>& trainer) {
  constexpr std::size_t kPoints = 201, kHidden = 4;
  std::vector<float> x(kPoints);
  for (std::size_t i = 0; i < kPoints; ++i) x[i] = static_cast<float>(i) / 100 - 1;
  const auto result =
      trainer
          .attach(
              [](const Kan& net, const tg::Inputs& in) {
                const tg::Tensor hidden = net.first(in["x"]);
                return std::map<std::string, tg::Tensor>{{"first", net.first.connections(in["x"])},
                                                         {"hidden", hidden},
                                                         {"second", net.second.connections(hidden)},
                                                         {"y", net.second(hidden)}};
              },
              {.inputs = {{"x", {kPoints, 1}}}})
          .run({{"x", x}});
  const auto column = [&](const std::string& name, std::size_t of, std::size_t k) {
    const std::vector<float> all = result.at(name).floats();
    std::vector<float> values(kPoints);
    for (std::size_t i = 0; i < kPoints; ++i) values[i] = all[i * of + k];
    return values;
  };
  const auto curve = [](const std::string& name, const std::vector<float>& xs,
                        const std::vector<float>& ys) {
    sample::Curve made{name, {}};
    for (std::size_t i = 0; i < xs.size(); ++i) made.points.emplace_back(xs[i], ys[i]);
    std::sort(made.points.begin(), made.points.end());
    return made;
  };
  sample::Drawing drawing(1000, 720);
  for (std::size_t k = 0; k < kHidden; ++k) {
    const std::string unit = "h" + std::to_string(k + 1);
    const double left = 50 + 240 * static_cast<double>(k);
    drawing.plot({left, 40, 180, 150}, {curve(unit, x, column("first", kHidden, k))},
                 {.title = "x to " + unit, .x_name = "x", .ticks = 4, .legend = false});
    drawing.plot({left, 265, 180, 150},
                 {curve(unit, column("hidden", kHidden, k), column("second", kHidden, k))},
                 {.title = unit + " to y", .x_name = unit, .ticks = 4, .legend = false});
  }
  std::vector<float> sine(kPoints);
  for (std::size_t i = 0; i < kPoints; ++i) sine[i] = std::sin(std::numbers::pi_v<float> * x[i]);
  drawing.plot({50, 490, 900, 180},
               {curve("network", x, column("y", 1, 0)), curve("sin(pi x)", x, sine)},
               {.title = "x to y", .x_name = "x"});
  drawing.save(options, "kan.svg");
}

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
  draw(options, trainer);
  return sample::at_most(options, "loss", recent, 1e-3, 1e-2);
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "A network of splines fits a sine.", fit);
}
