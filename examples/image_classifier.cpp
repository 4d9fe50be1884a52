// SPDX-License-Identifier: MIT
// Fine-tunes a vision transformer (Dosovitskiy et al. 2021, ViT-tiny with patches of 16 pixels)
// with a new head for other classes. First trains the head on features of the images, then the
// whole network with a small learning rate. --weights FILE imports a trained vit_tiny_patch16_224
// of timm (safetensors); without it, the features are those of random weights. --data FOLDER has
// images by class.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>

#include "common/sample.h"

namespace tg = tensorgrad;

namespace {

constexpr int kSide = 224, kPatch = 16, kWidth = 192, kHeads = 3, kLayers = 12;
constexpr int kPatches = (kSide / kPatch) * (kSide / kPatch);
constexpr int kBatch = 8;
constexpr std::size_t kBody = 5'524'416;  // parameters without the head

struct Vit {
  explicit Vit(int classes) : head(kWidth, classes) {}
  tg::nn::Conv2d patch{3, kWidth, kPatch, {.stride = kPatch}};
  tg::Parameter cls{{1, 1, kWidth}, tg::init::normal(0, 0.02)};
  tg::Parameter positions{{1, kPatches + 1, kWidth}, tg::init::normal(0, 0.02)};
  std::vector<tg::nn::TransformerEncoderLayer> blocks =
      std::vector(kLayers, tg::nn::TransformerEncoderLayer(kWidth, kHeads,
                                                           {.dim_feedforward = 4 * kWidth,
                                                            .dropout = 0,
                                                            .norm_first = true,
                                                            .gelu = true,
                                                            .layer_norm_eps = 1e-6}));
  tg::nn::LayerNorm norm{kWidth, 1e-6};
  tg::nn::Linear head;
  TG_MODULE(patch, cls, positions, blocks, norm, head)

  // Images [B, 3, 224, 224] -> features [B, 192]
  [[nodiscard]] tg::Tensor features(tg::Tensor images) const {
    const std::int64_t batch = images.size(0);
    const tg::Tensor patches = transpose(flatten(patch(images), 2), 1, 2);
    const tg::Tensor first = expand(cls, {batch, 1, kWidth});
    tg::Tensor x = tg::concat({first, patches}, 1) + positions;
    for (const auto& block : blocks) x = block(x);
    return norm(flatten(narrow(x, 1, 0, 1), 1));
  }
};

// Maps timm's parameter names to ours.
const std::vector<tg::NameRule> kNames = {{"patch_embed.proj.*", "patch.*"},
                                          {"cls_token", "cls"},
                                          {"pos_embed", "positions"},
                                          {"blocks.*.attn.qkv.*", "blocks.*.self_attn.in_proj_*"},
                                          {"blocks.*.attn.proj.*", "blocks.*.self_attn.out_proj.*"},
                                          {"blocks.*.mlp.fc1.*", "blocks.*.linear1.*"},
                                          {"blocks.*.mlp.fc2.*", "blocks.*.linear2.*"}};

// Imports the whole file except its head. Throws if a parameter of the body is missing.
void import_body(tg::TrainerBase& trainer, const std::string& path) {
  std::map<std::string, tg::HostTensor> weights =
      tg::read_weights(path, {.names = kNames, .ignore = {"head.*"}});
  const std::size_t count = weights.size();
  for (auto& [name, value] : trainer.download_params()) {
    if (name.starts_with("head.")) weights.emplace(name, std::move(value));
  }
  trainer.upload_params(weights);
  std::printf("%zu tensors imported from %s\n", count, path.c_str());
}

// Bytes u32 [B, H W C / 4] of images of one size -> [B, 3, 224, 224], from -1 to 1, as in timm.
tg::Tensor pixels_of(tg::Tensor bytes, const tg::Shape& shape) {
  const std::int64_t batch = bytes.size(0), channels = shape.size() == 3 ? shape[2] : 1;
  const tg::Tensor images = reshape(unpack_bytes(bytes), {batch, shape[0], shape[1], channels});
  const tg::Tensor large =
      interpolate(permute(images, {0, 3, 1, 2}), {kSide, kSide}, tg::Interpolation::kBilinear);
  return expand(large / 127.5 - 1.0, {batch, 3, kSide, kSide});
}

struct Data {
  tg::ImageSet train, test;
  tg::Shape shape;
  int classes = 0;
  [[nodiscard]] std::int64_t bytes() const {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
};

Data read_data(const sample::Options& options) {
  const std::string folder = sample::data_folder(options, "/usr/share/datasets/fashion-mnist");
  const bool idx = options.data.empty();  // images of 28 pixels, enlarged on the device
  tg::LabeledImages read = tg::read_image_folder(
      folder, idx ? tg::ImageFolderOptions{}
                  : tg::ImageFolderOptions{.height = kSide, .width = kSide, .channels = 3});
  const auto first = [&](tg::ImageSet set, std::int64_t count) {
    set.count = std::min(set.count, count) / kBatch * kBatch;
    set.labels.resize(static_cast<std::size_t>(set.count));
    return set;
  };
  const std::int64_t train = options.full() ? 1000 : options.steps(0, 80);
  return {first(std::move(read.train), std::max<std::int64_t>(train, kBatch)),
          first(std::move(read.test), options.full() ? 400 : options.steps(0, 40) + kBatch),
          std::move(read.image_shape), read.classes};
}

std::vector<std::uint32_t> batch_of(const Data& data, const tg::ImageSet& set, std::int64_t first) {
  const auto begin = set.images.begin() + first * data.bytes();
  return sample::pack_bytes({begin, begin + kBatch * data.bytes()}, kBatch * data.bytes());
}

// Returns the results of a function of the images "x", concatenated.
std::vector<float> run_on(tg::CompiledFunction& function, const Data& data,
                          const tg::ImageSet& set) {
  std::vector<float> all;
  for (std::int64_t first = 0; first < set.count; first += kBatch) {
    const std::vector<float> rows = function({{"x", batch_of(data, set, first)}}).floats();
    all.insert(all.end(), rows.begin(), rows.end());
    sample::progress("image " + std::to_string(first + kBatch) + " of " +
                     std::to_string(set.count));
  }
  return all;
}

struct Head {
  std::map<std::string, tg::HostTensor> params;
  double loss = 0;
};

// Trains a head on features [N, 192] by 200 full-batch steps of Adam.
Head train_head(const sample::Options& options, const Data& data,
                const std::vector<float>& features) {
  auto trainer = tg::compile(
      tg::nn::Linear(kWidth, data.classes),
      [](const tg::nn::Linear& head, const tg::Inputs& in) {
        return cross_entropy(head(in["x"]), in["y"]);
      },
      {.inputs = {{"x", {data.train.count, kWidth}}, {"y", {data.train.count}, tg::i32}},
       .optimizer = tg::optim::Adam{.lr = 0.05},
       .seed = 1,
       .device = options.device});
  const int steps = options.steps(200, 200);
  float loss = 0;
  for (int step = 0; step < steps; ++step)
    loss = trainer.step({{"x", features}, {"y", data.train.labels}}).loss;
  std::printf("head: loss %.4f after %d steps\n", loss, steps);
  Head head{{}, loss};
  for (auto& [name, value] : trainer.download_params())
    head.params.emplace("head." + name, std::move(value));
  return head;
}

// Returns the share of test images that are classified correctly. Sets `said` to the predictions.
double accuracy(tg::CompiledFunction& logits, const Data& data, std::vector<std::size_t>& said) {
  const std::vector<float> all = run_on(logits, data, data.test);
  said.clear();
  double right = 0;
  for (auto row = all.begin(); row != all.end(); row += data.classes) {
    const auto best = std::max_element(row, row + data.classes) - row;
    right += best == data.test.labels[said.size()] ? 1 : 0;
    said.push_back(static_cast<std::size_t>(best));
  }
  return right / static_cast<double>(said.size());
}

// Draws a row for each class, with the first test images that are predicted as it.
void draw(const sample::Options& options, const Data& data, const std::vector<std::size_t>& said) {
  constexpr std::size_t kShown = 10, kSmall = 56;
  const auto height = static_cast<std::size_t>(data.shape[0]),
             width = static_cast<std::size_t>(data.shape[1]);
  const std::size_t channels = data.shape.size() == 3 ? 3 : 1;
  sample::Picture picture(kShown * kSmall, data.classes * static_cast<int>(kSmall));
  std::vector<std::size_t> filled(static_cast<std::size_t>(data.classes));
  for (std::size_t i = 0; i < said.size(); ++i) {
    const std::size_t column = filled[said[i]]++;
    for (std::size_t p = 0; column < kShown && p < kSmall * kSmall; ++p) {
      const std::size_t x = p % kSmall, y = p / kSmall;
      const std::size_t from = (i * height + y * height / kSmall) * width + x * width / kSmall;
      const auto part = [&](std::size_t c) {
        return static_cast<float>(data.test.images[from * channels + c % channels]) / 255;
      };
      picture.set(static_cast<int>(column * kSmall + x), static_cast<int>(said[i] * kSmall + y),
                  part(0), part(1), part(2));
    }
  }
  sample::save_png(options, "image_classifier.png", picture);
}

bool learn(const sample::Options& options) {
  const Data data = read_data(options);
  const tg::Shape shape = data.shape;
  const int steps = options.steps(100, 3);
  auto trainer = tg::compile(
      Vit(data.classes),
      [shape](const Vit& net, const tg::Inputs& in) {
        return cross_entropy(net.head(net.features(pixels_of(in["x"], shape))), in["y"]);
      },
      {.inputs = {{"x", {kBatch, data.bytes() / 4}, tg::u32}, {"y", {kBatch}, tg::i32}},
       .optimizer =
           tg::optim::AdamW{.lr = tg::Schedule::cosine(2e-5, 0, steps), .weight_decay = 0.01},
       .groups = {tg::no_weight_decay()},
       .clip_grad_norm = 1,
       .seed = 1,
       .device = options.device});
  const auto in_head = static_cast<std::size_t>(kWidth + 1) * data.classes;
  if (sample::count_parameters(trainer) != kBody + in_head) throw tg::UserError("a wrong model");
  if (!options.weights.empty()) import_body(trainer, options.weights);
  const tg::FunctionOptions images{.inputs = {{"x", {kBatch, data.bytes() / 4}, tg::u32}}};
  auto features = trainer.attach(
      [shape](const Vit& net, const tg::Inputs& in) {
        return net.features(pixels_of(in["x"], shape));
      },
      images);
  auto logits = trainer.attach(
      [shape](const Vit& net, const tg::Inputs& in) {
        return net.head(net.features(pixels_of(in["x"], shape)));
      },
      images);
  const Head trained = train_head(options, data, run_on(features, data, data.train));
  trainer.upload_params(trained.params, {.partial = true});
  std::vector<std::size_t> said;
  std::printf("with a new head, %.1f %% of the test images are told right\n",
              100 * accuracy(logits, data, said));
  sample::Random random(1);
  for (int step = 1; step <= steps; ++step) {
    const std::int64_t first =
        kBatch * sample::below(random, static_cast<int>(data.train.count / kBatch));
    const auto labels = data.train.labels.begin() + first;
    const float loss = trainer
                           .step({{"x", batch_of(data, data.train, first)},
                                  {"y", std::vector<std::int32_t>(labels, labels + kBatch)}})
                           .loss;
    sample::progress("step " + std::to_string(step) + "  loss " + std::to_string(loss));
  }
  const double share = accuracy(logits, data, said);
  draw(options, data, said);
  std::printf("%.1f %% after %d more steps of the whole network\n", 100 * share, steps);
  // Only trained weights transfer to other images, but a head learns the training data from any
  // features.
  return sample::at_most(options, "loss of the head", trained.loss, 1, 1);
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv, "Gives a vision transformer a new head.", learn);
}
