// SPDX-License-Identifier: MIT
// Fits the line y = 3x - 1 to eight points.
#include <cmath>
#include <cstdio>
#include <vector>

#include <tensorgrad/tensorgrad.h>

namespace tg = tensorgrad;

struct Line {
  tg::nn::Linear layer{1, 1};
  TG_MODULE(layer)
};

int main() {
  try {
    auto loss = [](const Line& line, const tg::Inputs& in) {
      return mse(line.layer(in["x"]), in["y"]);
    };
    auto trainer = tg::compile(Line{}, loss,
                               {.inputs = {{"x", {8, 1}}, {"y", {8, 1}}},
                                .optimizer = tg::optim::SGD{.lr = 0.3},
                                .device = {.kind = "cpu"}});  // "auto": a GPU if there is one
    const std::vector<float> x = {-1, -0.75F, -0.5F, -0.25F, 0.25F, 0.5F, 0.75F, 1};
    std::vector<float> y;
    for (const float each : x) y.push_back(3 * each - 1);
    float last = 0;
    for (int step = 0; step < 100; ++step) last = trainer.step({{"x", x}, {"y", y}}).loss;

    const auto params = trainer.download_params();
    const float slope = params.at("layer.weight").floats()[0];
    const float offset = params.at("layer.bias").floats()[0];
    std::printf("y = %.4fx %+.4f, loss %g\n", slope, offset, last);
    return std::abs(slope - 3) < 1e-3F && std::abs(offset + 1) < 1e-3F ? 0 : 1;
  } catch (const tg::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
