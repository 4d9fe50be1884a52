// SPDX-License-Identifier: MIT
// Flow matching (Lipman et al. 2023) on Fashion-MNIST: generates images by integrating a velocity
// from noise, at time 0, to an image, at time 1. The network learns the velocity of the straight
// line between noise and an image of a class. It predicts the image, which is simpler than the
// noise in it (Li and He 2025). A classifier judges the results. Draws images of each class.
#include <map>

#include "common/sample.h"

namespace tg = tensorgrad;

namespace {

constexpr int kBatch = 128, kSide = 28, kPixels = kSide * kSide, kClasses = 10, kTests = 200;
constexpr int kWidth = 512, kWaves = 16, kEulerSteps = 25, kMade = 200, kShown = 60;

struct Block {
  tg::nn::LayerNorm norm{kWidth};
  tg::nn::Linear up{kWidth, kWidth}, down{kWidth, kWidth};
  TG_MODULE(norm, up, down)
  tg::Tensor operator()(tg::Tensor x) const { return x + down(silu(up(norm(x)))); }
};

struct Flow {
  tg::nn::Linear in{kPixels, kWidth}, time{2 * kWaves, kWidth};
  tg::nn::Embedding kinds{kClasses, kWidth};
  std::vector<Block> blocks = std::vector<Block>(3);
  tg::nn::LayerNorm norm{kWidth};
  tg::nn::Linear out{kWidth, kPixels};
  TG_MODULE(in, time, kinds, blocks, norm, out)

  // Returns the velocity [B, 784] at x [B, 784] and times t [B, 1] below 1, toward images of
  // classes i32 [B].
  [[nodiscard]] tg::Tensor velocity(tg::Tensor x, tg::Tensor t, tg::Tensor kind) const {
    const tg::Tensor phase = t * exp(0.3 * tg::arange(kWaves, tg::f32));
    tg::Tensor h = in(x) + time(tg::concat({sin(phase), cos(phase)}, 1)) + kinds(kind);
    for (const Block& block : blocks) h = block(h);
    return (out(norm(h)) - x) / (1.0 - t);
  }
};

struct Classifier {
  tg::nn::Linear in{kPixels, 128}, out{128, kClasses};
  TG_MODULE(in, out)
  tg::Tensor operator()(tg::Tensor x) const { return out(relu(in(x))); }
};

struct Nets {
  Flow flow;
  Classifier judge;
  TG_MODULE(flow, judge)
};

// Bytes u32 [B, 196] -> [B, 784] from -1 to 1.
tg::Tensor pixels(const tg::Inputs& in) {
  return reshape(unpack_bytes(in["x"]), {-1, kPixels}) / 127.5 - 1.0;
}

// Returns the squared error of the velocity at times t [B, 1] between random noise and the images.
tg::Tensor error_at(const Nets& nets, const tg::Inputs& in, tg::Tensor t) {
  const tg::Tensor image = pixels(in), noise = tg::randn_like(image);
  return mse(nets.flow.velocity(noise + t * (image - noise), t, in["y"]), image - noise);
}

// Samples early times, which decide what the noise becomes, more often.
tg::Tensor flow_loss(const Nets& nets, const tg::Inputs& in) {
  return error_at(nets, in, sigmoid(tg::normal({kBatch, 1}, -0.8, 0.8)));
}

tg::Tensor judge_loss(const Nets& nets, const tg::Inputs& in) {
  return cross_entropy(nets.judge(pixels(in)), in["y"]);
}

// Generates images in `steps` steps, and the classifier's predictions. Image i is of class i % 10.
std::map<std::string, tg::Tensor> make(const Nets& nets, int steps) {
  const tg::Tensor kind = fmod(tg::arange(kMade), kClasses);
  tg::Tensor x = tg::randn({kMade, kPixels});
  for (int step = 0; step < steps; ++step)
    x = x + nets.flow.velocity(x, tg::full({kMade, 1}, 1.0 * step / steps), kind) / steps;
  return {{"images", x}, {"said", argmax(nets.judge(x), -1)}};
}

bool learn(const sample::Options& options) {
  const std::string folder = sample::data_folder(options, "/usr/share/datasets/fashion-mnist");
  tg::LabeledImages data = tg::read_image_folder(folder);
  const std::int64_t count = options.full() ? data.train.count : options.steps(0, 30) * kBatch;
  const int epochs = options.smoke() ? 1 : options.steps(12, 4);
  const std::int64_t batches = count / kBatch;
  const std::vector<tg::InputSpec> dataset{{"x", {count, kPixels / 4}, tg::u32},
                                           {"y", {count}, tg::i32}};
  const auto rate = tg::Schedule::one_cycle({.peak = 2e-3, .steps = epochs * batches});
  auto trainer = tg::compile(Nets{},
                             {{.name = "flow",
                               .loss = flow_loss,
                               .params = "flow.*",
                               .options = {.dataset = dataset,
                                           .batch = kBatch,
                                           .optimizer = tg::optim::AdamW{.lr = rate},
                                           .clip_grad_norm = 1,
                                           .ema_decay = options.full() ? 0.999 : 0.95}},
                              {.name = "judge",
                               .loss = judge_loss,
                               .params = "judge.*",
                               .options = {.dataset = dataset,
                                           .batch = kBatch,
                                           .optimizer = tg::optim::Adam{.lr = 1e-3}}}},
                             {.seed = 1, .device = options.device});
  trainer.upload_data("x", sample::pack_bytes(data.train.images, count * kPixels));
  data.train.labels.resize(static_cast<std::size_t>(count));
  trainer.upload_data("y", data.train.labels);
  trainer["judge"].run(static_cast<int>(3 * batches));
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    double loss = 0;
    for (const float each : trainer["flow"].run(static_cast<int>(batches)))
      loss += each / static_cast<double>(batches);
    sample::progress("epoch " + std::to_string(epoch) + "  loss " + std::to_string(loss), true);
  }

  auto test = trainer.attach(
      [](const Nets& nets, const tg::Inputs& in) {
        return error_at(nets, in, tg::full({kTests, 1}, 0.5));
      },
      {.inputs = {{"x", {kTests, kPixels / 4}, tg::u32}, {"y", {kTests}, tg::i32}},
       .weights = tg::WeightSource::kEma});
  data.test.labels.resize(kTests);
  const std::vector<std::uint32_t> tests = sample::pack_bytes(data.test.images, kTests * kPixels);
  const double error = test({{"x", tests}, {"y", data.test.labels}}).floats()[0];

  const int steps = options.steps(kEulerSteps, kEulerSteps);
  auto maker =
      trainer.attach([&](const Nets& nets, const tg::Inputs&) { return make(nets, steps); },
                     {.weights = tg::WeightSource::kEma});
  const tg::NamedTensors made = maker.run();
  std::vector<float> shown = made.at("images").floats();
  shown.resize(kShown * kPixels);
  for (float& each : shown) each = (each + 1) / 2;
  sample::save_png(options, "flow_matching.png", sample::sheet(shown, kSide, kSide, kClasses));
  const std::vector<std::int32_t> said = made.at("said").ints();
  double good = 0;
  for (int i = 0; i < kMade; ++i)
    good += said[static_cast<std::size_t>(i)] == i % kClasses ? 1.0 / kMade : 0;
  const bool learned =
      sample::at_most(options, "squared error of the velocity halfway", error, 0.25, 0.6);
  return sample::at_least(options, "images made that are taken for their class", good, 0.85, 0.6) &&
         learned;
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "Learns how noise becomes clothes.", learn);
}
