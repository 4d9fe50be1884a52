// SPDX-License-Identifier: MIT
// Represents an image by a network that maps a pixel's position, encoded as sines and cosines of
// rising frequency (Tancik et al. 2020), to its color. All pixels are stored on the device, and
// batches are sampled there.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/sample.h"

namespace tg = tensorgrad;

namespace {

constexpr int kSize = 64, kPixels = kSize * kSize, kFrequencies = 8;

struct Field {
  tg::nn::Linear first{4 * kFrequencies, 64}, second{64, 64}, third{64, 64}, colour{64, 3};
  TG_MODULE(first, second, third, colour)

  // Positions [B, 2] in (-1, 1) -> colors [B, 3] in (0, 1).
  tg::Tensor operator()(tg::Tensor place) const {
    const tg::Tensor rate = exp2(tg::arange(kFrequencies, tg::f32)) * std::numbers::pi;
    const tg::Tensor angle = flatten(unsqueeze(place, -1) * rate, -2);
    tg::Tensor x = tg::concat({sin(angle), cos(angle)}, -1);
    x = relu(third(relu(second(relu(first(x))))));
    return sigmoid(colour(x));
  }
};

// Returns a disc of changing colors with "TG" in front of it.
std::vector<float> image() {
  const char* const letters[] = {
      "#####..####", "..#...#....", "..#...#....", "..#...#..##",
      "..#...#...#", "..#...#...#", "..#....####",
  };
  std::vector<float> rgb;
  for (int y = 0; y < kSize; ++y) {
    for (int x = 0; x < kSize; ++x) {
      const float dx = (static_cast<float>(x) - 31.5F) / 32,
                  dy = (static_cast<float>(y) - 31.5F) / 32;
      const float r = std::sqrt(dx * dx + dy * dy);
      const int column = (x - 10) / 4, row = (y - 18) / 4;
      const bool inside = x >= 10 && y >= 18 && column < 11 && row < 7;
      if (inside && letters[row][column] == '#') {
        rgb.insert(rgb.end(), {1, 1, 0.9F});
      } else {
        rgb.insert(rgb.end(), {0.2F + 0.6F * (1 - r), 0.3F + 0.3F * dx, 0.5F + 0.4F * r});
      }
    }
  }
  for (float& value : rgb) value = std::min(std::max(value, 0.0F), 1.0F);
  return rgb;
}

bool fit(const sample::Options& options) {
  std::vector<float> places;
  for (int y = 0; y < kSize; ++y) {
    for (int x = 0; x < kSize; ++x) {
      for (const int at : {x, y}) places.push_back((static_cast<float>(at) + 0.5F) * 2 / kSize - 1);
    }
  }
  const std::vector<float> colours = image();
  const int steps = options.steps(4000, 500);
  auto trainer = tg::compile(
      Field{},
      [](const Field& net, const tg::Inputs& in) { return mse(net(in["place"]), in["colour"]); },
      {.dataset = {{"place", {kPixels, 2}}, {"colour", {kPixels, 3}}},
       .batch = 1024,
       .optimizer = tg::optim::Adam{.lr = tg::Schedule::cosine(3e-3, 1e-4, steps)},
       .device = options.device});
  trainer.upload_data("place", places);
  trainer.upload_data("colour", colours);
  constexpr int kAtOnce = 100;
  for (int step = 0; step < steps; step += kAtOnce) {
    const float now = trainer.run(std::min(kAtOnce, steps - step)).back();
    sample::progress("step " + std::to_string(step) + "  loss " + std::to_string(now));
  }
  auto draw =
      trainer.attach([](const Field& net, const tg::Inputs& in) { return net(in["place"]); },
                     {.inputs = {{"place", {kPixels, 2}}}});
  const std::vector<float> drawn = draw({{"place", places}}).floats();
  double error = 0;
  sample::Picture picture(2 * kSize, kSize);
  for (int i = 0; i < kPixels; ++i) {
    const float* want = &colours[static_cast<std::size_t>(i) * 3];
    const float* got = &drawn[static_cast<std::size_t>(i) * 3];
    for (int c = 0; c < 3; ++c) error += std::pow(want[c] - got[c], 2) / (3 * kPixels);
    picture.set(i % kSize, i / kSize, want[0], want[1], want[2]);
    picture.set(kSize + i % kSize, i / kSize, got[0], got[1], got[2]);
  }
  sample::save_png(options, "nerf.png", picture);
  return sample::at_least(options, "PSNR in dB", -10 * std::log10(error), 32, 20);
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "A network learns an image by heart.", fit);
}
