// SPDX-License-Identifier: MIT
// A generative adversarial network (Goodfellow et al. 2014). A generator makes points from noise,
// and a discriminator tells them from points around eight places on a circle. Each has its own loss
// and optimizer in one trainer, and they take steps in turn. A penalty keeps the discriminator's
// gradient at real points small (R1: Mescheder, Geiger and Nowozin 2018), so that training
// converges. The points shown come from the averaged parameters of the generator.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "common/sample.h"

namespace tg = tensorgrad;

namespace {

constexpr int kPlaces = 8, kPoints = 8192, kBatch = 256, kNoise = 4, kShown = 2048;
constexpr float kSpread = 0.05F;  // standard deviation around a place; the circle's radius is 1

struct Judge {
  tg::nn::Linear first{2, 64}, second{64, 64}, third{64, 1};
  TG_MODULE(first, second, third)
  // Points [B, 2] -> [B, 1], positive for real ones.
  tg::Tensor operator()(tg::Tensor x) const {
    return third(leaky_relu(second(leaky_relu(first(x), 0.2)), 0.2));
  }
};

struct Maker {
  tg::nn::Linear first{kNoise, 64}, second{64, 64}, third{64, 2};
  TG_MODULE(first, second, third)
  // Noise [B, kNoise] -> points [B, 2].
  tg::Tensor operator()(tg::Tensor z) const { return third(relu(second(relu(first(z))))); }
};

struct Gan {
  Judge judge;
  Maker maker;
  TG_MODULE(judge, maker)
  [[nodiscard]] tg::Tensor made(int count) const { return maker(tg::randn({count, kNoise})); }
};

tg::Tensor judge_loss(const Gan& net, const tg::Inputs& in) {
  const tg::Tensor real = net.judge(in["x"]), made = net.judge(net.made(kBatch));
  const tg::Tensor slope = grad(sum(real), {in["x"]})[0];
  return mean(softplus(-real)) + mean(softplus(made)) + 0.05 * mean(sum(square(slope), {1}));
}

tg::Tensor maker_loss(const Gan& net, const tg::Inputs&) {
  return mean(softplus(-net.judge(net.made(kBatch))));
}

using Place = std::array<float, 2>;
Place place(int number) {
  const auto angle = static_cast<float>(2 * std::numbers::pi * number / kPlaces);
  return {std::cos(angle), std::sin(angle)};
}

std::vector<float> real_points(sample::Random& random) {
  std::vector<float> points;
  for (int i = 0; i < kPoints; ++i) {
    const Place at = place(sample::below(random, kPlaces));
    const float r = kSpread * std::sqrt(-2 * std::log(1 - sample::uniform(random, 0, 1)));
    const float turn = sample::uniform(random, 0, static_cast<float>(2 * std::numbers::pi));
    points.insert(points.end(), {at[0] + r * std::cos(turn), at[1] + r * std::sin(turn)});
  }
  return points;
}

struct Judgement {
  double good = 0;    // share of points within four standard deviations of a place
  double rarest = 1;  // share of these at the place with the fewest, times kPlaces
};

Judgement judge_points(const std::vector<float>& points) {
  std::array<double, kPlaces> at{};
  double good = 0;
  for (std::size_t i = 0; i < points.size(); i += 2) {
    for (int number = 0; number < kPlaces; ++number) {
      const Place centre = place(number);
      if (std::hypot(points[i] - centre[0], points[i + 1] - centre[1]) > 4 * kSpread) continue;
      ++at[static_cast<std::size_t>(number)];
      ++good;
    }
  }
  return {good / (static_cast<double>(points.size()) / 2),
          *std::min_element(at.begin(), at.end()) * kPlaces / std::max(good, 1.0)};
}

// Draws a density plot: darker means more points.
void draw(sample::Picture& picture, int left, int size, const std::vector<float>& points) {
  std::vector<std::vector<float>> ink(static_cast<std::size_t>(size));
  for (std::vector<float>& line : ink) line.resize(ink.size());
  const auto pixel = [&](float v) {
    const float at = (v / 1.4F + 1) / 2 * static_cast<float>(size);
    return static_cast<std::size_t>(std::clamp(at, 0.0F, static_cast<float>(size - 1)));
  };
  for (std::size_t i = 0; i < points.size(); i += 2) {
    float& here = ink[pixel(-points[i + 1])][pixel(points[i])];
    here = std::min(1.0F, here + 0.5F);
  }
  int y = 0;
  for (const std::vector<float>& line : ink) {
    int x = left;
    for (const float dark : line)
      picture.set(x++, y, 1 - 0.85F * dark, 1 - 0.6F * dark, 1 - 0.25F * dark);
    ++y;
  }
}

bool play(const sample::Options& options) {
  const tg::optim::Adam adam{.lr = 1e-3, .beta1 = 0, .beta2 = 0.99};
  auto trainer = tg::compile(
      Gan{},
      {{.name = "judge",
        .loss = judge_loss,
        .params = "judge.*",
        .options = {.dataset = {{"x", {kPoints, 2}}}, .batch = kBatch, .optimizer = adam}},
       {.name = "maker",
        .loss = maker_loss,
        .params = "maker.*",
        .options = {.optimizer = adam, .ema_decay = 0.995}}},
      {.seed = 1, .device = options.device});
  auto make = trainer.attach([](const Gan& net, const tg::Inputs&) { return net.made(kShown); },
                             {.weights = tg::WeightSource::kEma});
  sample::Random random(5);
  const std::vector<float> real = real_points(random);
  trainer.upload_data("x", real);
  const int rounds = options.steps(6000, 2000);
  for (int round = 1; round <= rounds; ++round) {
    trainer["judge"].submit(1);
    trainer["maker"].submit(1);
    if (round % 500 != 0 && round != rounds) continue;
    const Judgement now = judge_points(make().floats());
    sample::progress("round " + std::to_string(round) + "  losses " +
                     std::to_string(trainer["judge"].losses().back()) + ", " +
                     std::to_string(trainer["maker"].losses().back()) + "  good " +
                     std::to_string(now.good) + "  rarest place " + std::to_string(now.rarest));
  }
  const std::vector<float> made = make().floats();
  constexpr int kSize = 256;
  sample::Picture picture(2 * kSize, kSize);
  draw(picture, 0, kSize, {real.begin(), real.begin() + static_cast<std::ptrdiff_t>(2) * kShown});
  draw(picture, kSize, kSize, made);
  sample::save_png(options, "gan.png", picture);
  const Judgement end = judge_points(made);
  const bool good = sample::at_least(options, "share of points at a place", end.good, 0.9, 0.75);
  return sample::at_least(options, "points at the rarest place, of an eighth", end.rarest, 0.6,
                          0.5) &&
         good;
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "Two networks against each other.", play);
}
