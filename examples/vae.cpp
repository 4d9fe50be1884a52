// SPDX-License-Identifier: MIT
// A variational autoencoder (Kingma and Welling 2014) of Fashion-MNIST with eight latent numbers
// per image. Draws test images, their reconstructions, and generated images.
#include <cmath>

#include "common/sample.h"

namespace tg = tensorgrad;

namespace {

constexpr int kBatch = 128, kPixels = 784, kLatent = 8, kShown = 16;

struct Vae {
  tg::nn::Linear in{kPixels, 256}, mid{256, 256}, mean{256, kLatent}, log_variance{256, kLatent};
  tg::nn::Linear back{kLatent, 256}, wide{256, 256}, out{256, kPixels};
  TG_MODULE(in, mid, mean, log_variance, back, wide, out)

  [[nodiscard]] tg::Tensor decode(tg::Tensor z) const {
    return sigmoid(out(relu(wide(relu(back(z))))));
  }
};

tg::Tensor pixels(const tg::Inputs& in, std::int64_t rows) {
  return reshape(unpack_bytes(in["x"]), {rows, kPixels}) / 255.0;
}

// Returns the squared error of an image plus the KL divergence of its code from the standard normal
// distribution.
tg::Tensor loss_of(const Vae& net, const tg::Inputs& in) {
  const tg::Tensor x = pixels(in, kBatch);
  const tg::Tensor h = relu(net.mid(relu(net.in(x))));
  const tg::Tensor mean = net.mean(h), log_variance = net.log_variance(h);
  const tg::Tensor z = mean + exp(0.5 * log_variance) * tg::randn({kBatch, kLatent});
  const tg::Tensor error = sum(square(net.decode(z) - x));
  const tg::Tensor distance = -0.5 * sum(1.0 + log_variance - square(mean) - exp(log_variance));
  return (error + distance) / static_cast<double>(kBatch);
}

bool learn(const sample::Options& options) {
  const std::string folder = sample::data_folder(options, "/usr/share/datasets/fashion-mnist");
  const tg::LabeledImages data = tg::read_image_folder(folder);
  const std::int64_t count = options.full() ? data.train.count : options.steps(0, 32) * kBatch;
  const int epochs = options.steps(10, 8);
  auto trainer = tg::compile(Vae{}, loss_of,
                             {.dataset = {{"x", {count, kPixels / 4}, tg::u32}},
                              .batch = kBatch,
                              .optimizer = tg::optim::Adam{.lr = 1e-3},
                              .clip_grad_norm = 1,
                              .seed = 1,
                              .device = options.device});
  trainer.upload_data("x", sample::pack_bytes(data.train.images, count * kPixels));
  double loss = 0;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    const std::vector<float> losses = trainer.run(static_cast<int>(trainer.batches_per_epoch()));
    loss = 0;
    for (const float each : losses) loss += each / static_cast<double>(losses.size());
    sample::progress("epoch " + std::to_string(epoch) + "  loss " + std::to_string(loss), true);
  }
  auto again = trainer.attach(
      [](const Vae& net, const tg::Inputs& in) {
        return net.decode(net.mean(relu(net.mid(relu(net.in(pixels(in, kShown)))))));
      },
      {.inputs = {{"x", {kShown, kPixels / 4}, tg::u32}}});
  auto made_up = trainer.attach(
      [](const Vae& net, const tg::Inputs&) { return net.decode(tg::randn({kShown, kLatent})); },
      {.seed = 7});
  const std::vector<std::uint32_t> tests = sample::pack_bytes(data.test.images, kShown * kPixels);
  std::vector<float> shown(kShown * kPixels);
  for (std::size_t i = 0; i < shown.size(); ++i)
    shown[i] = static_cast<float>(data.test.images[i]) / 255;
  for (const std::vector<float>& row : {again({{"x", tests}}).floats(), made_up({}).floats()})
    shown.insert(shown.end(), row.begin(), row.end());
  sample::save_png(options, "vae.png", sample::sheet(shown, 28, 28, kShown));
  return sample::at_most(options, "squared error and divergence of an image", loss, 30, 55);
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "Learns a code of clothes.", learn);
}
