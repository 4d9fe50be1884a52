// SPDX-License-Identifier: MIT
// A convolutional network classifies pictures: Fashion-MNIST, any folder of IDX files with pictures
// of 28x28, or any folder of pictures by class. Draws a confusion matrix of test images: rows are
// true classes, columns are predictions.
#include <algorithm>
#include <array>

#include "common/sample.h"

namespace tg = tensorgrad;

namespace {

constexpr int kBatch = 128, kTestBatch = 500, kSide = 28, kPixels = kSide * kSide;

struct Cnn {
  explicit Cnn(int classes) : out(128, classes) {}
  tg::nn::Conv2d first{1, 16, 3, {.padding = 1}}, second{16, 32, 3, {.padding = 1}};
  tg::nn::BatchNorm2d norm1{16}, norm2{32};
  tg::nn::Linear in{32 * kPixels / 16, 128};
  tg::nn::Linear out;
  TG_MODULE(first, second, norm1, norm2, in, out)

  // Bytes u32 [B, 196] -> logits [B, classes]
  tg::Tensor operator()(tg::Tensor bytes) const {
    tg::Tensor x = reshape(unpack_bytes(bytes), {-1, 1, kSide, kSide}) / 255.0;
    x = max_pool2d(relu(norm1(first(x))), 2);
    x = max_pool2d(relu(norm2(second(x))), 2);
    return out(dropout(relu(in(flatten(x, 1))), 0.25));
  }
};

std::vector<std::int32_t> classify(tg::CompiledFunction& forward, const tg::ImageSet& images) {
  std::vector<std::int32_t> all;
  for (std::int64_t first = 0; first < images.count; first += kTestBatch) {
    const std::int64_t count = std::min<std::int64_t>(kTestBatch, images.count - first);
    std::vector<std::uint8_t> bytes(kTestBatch * kPixels);
    std::copy_n(images.images.begin() + first * kPixels, count * kPixels, bytes.begin());
    const auto said = forward({{"x", sample::pack_bytes(bytes, kTestBatch * kPixels)}}).ints();
    all.insert(all.end(), said.begin(), said.begin() + count);
  }
  return all;
}

// For each pair of classes, shows the first test image of one class that is predicted as the other.
sample::Picture confusion(const tg::LabeledImages& data, const std::vector<std::int32_t>& said) {
  std::vector<float> cells(static_cast<std::size_t>(data.classes) * data.classes * kPixels);
  std::vector<bool> filled(static_cast<std::size_t>(data.classes) * data.classes);
  for (std::size_t i = 0; i < said.size(); ++i) {
    const auto cell =
        static_cast<std::size_t>(data.test.labels[i]) * static_cast<std::size_t>(data.classes) +
        static_cast<std::size_t>(said[i]);
    if (filled[cell]) continue;
    filled[cell] = true;
    for (std::size_t p = 0; p < kPixels; ++p)
      cells[cell * kPixels + p] = static_cast<float>(data.test.images[i * kPixels + p]) / 255;
  }
  return sample::sheet(cells, kSide, kSide, data.classes);
}

bool learn(const sample::Options& options) {
  const std::string folder = sample::data_folder(options, "/usr/share/datasets/fashion-mnist");
  tg::LabeledImages data =
      tg::read_image_folder(folder, {.height = kSide, .width = kSide, .channels = 1});
  std::int64_t count = data.train.count;
  if (!options.full()) {
    count = std::min<std::int64_t>(count, options.steps(0, 60) * kBatch);
    data.test.count = std::min<std::int64_t>(data.test.count, kTestBatch);
  }
  const int epochs = options.full() ? 5 : 1;
  const auto steps = epochs * (count / kBatch);
  auto trainer = tg::compile(
      Cnn(data.classes),
      [](const Cnn& net, const tg::Inputs& in) { return cross_entropy(net(in["x"]), in["y"]); },
      {.dataset = {{"x", {count, kPixels / 4}, tg::u32}, {"y", {count}, tg::i32}},
       .batch = kBatch,
       .optimizer = tg::optim::AdamW{.lr = tg::Schedule::one_cycle({.peak = 5e-3, .steps = steps})},
       .seed = 1,
       .device = options.device});
  auto forward =
      trainer.attach([](const Cnn& net, const tg::Inputs& in) { return argmax(net(in["x"]), -1); },
                     {.inputs = {{"x", {kTestBatch, kPixels / 4}, tg::u32}}});
  trainer.upload_data("x", sample::pack_bytes(data.train.images, count * kPixels));
  data.train.labels.resize(static_cast<std::size_t>(count));
  trainer.upload_data("y", data.train.labels);
  std::vector<std::int32_t> said;
  double accuracy = 0;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    double loss = 0;
    const std::vector<float> losses = trainer.run(static_cast<int>(trainer.batches_per_epoch()));
    for (const float each : losses) loss += each / static_cast<double>(losses.size());
    said = classify(forward, data.test);
    std::size_t right = 0;
    for (std::size_t i = 0; i < said.size(); ++i) right += said[i] == data.test.labels[i] ? 1U : 0U;
    accuracy = static_cast<double>(right) / static_cast<double>(said.size());
    sample::progress("epoch " + std::to_string(epoch) + "  loss " + std::to_string(loss) +
                         "  accuracy " + std::to_string(accuracy),
                     true);
  }
  sample::save_png(options, "fashion_cnn.png", confusion(data, said));
  // First labels of MNIST, which is easier.
  constexpr std::array<std::int32_t, 8> kFirstDigits = {5, 0, 4, 1, 9, 2, 1, 3};
  const bool digits =
      std::equal(kFirstDigits.begin(), kFirstDigits.end(), data.train.labels.begin());
  return sample::at_least(options, "share of test images that are told right", accuracy,
                          digits ? 0.99 : 0.91, 0.7);
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "Learns to tell clothes apart.", learn);
}
