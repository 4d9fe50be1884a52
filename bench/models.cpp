// SPDX-License-Identifier: MIT
#include "models.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <stdexcept>

namespace tensorgrad::bench {
namespace {

// ---- models ----------------------------------------------------------------------------------

struct Mlp {
  explicit Mlp(const std::vector<std::int64_t>& sizes) {
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) layers.emplace_back(sizes[i], sizes[i + 1]);
  }
  std::vector<nn::Linear> layers;
  TG_MODULE(layers)
  Tensor operator()(Tensor x) const {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      x = layers[i](x);
      if (i + 1 < layers.size()) x = relu(x);
    }
    return x;
  }
};

struct DecoderSize {
  std::int64_t vocabulary, width, layers, heads, length, batch;
  bool gelu;
  double clip_norm;      // 0: none
  std::int64_t answers;  // only this many symbols at the end of a text count in the loss
};

constexpr DecoderSize kAddition = {12, 64, 3, 4, 8, 128, false, 1, 3};
constexpr DecoderSize kGpt = {65, 384, 6, 6, 256, 64, true, 1, 256};
constexpr DecoderSize kGpt2 = {256, 768, 12, 12, 1024, 8, true, 1, 1024};
constexpr DecoderSize kGpt2Words = {50257, 768, 12, 12, 1024, 8, true, 1, 1024};
constexpr DecoderSize kLongGpt = {256, 384, 6, 6, 4096, 4, true, 1, 4096};
constexpr DecoderSize kSmallGpt = {65, 128, 4, 4, 64, 8, true, 0, 64};

nn::Linear layer(std::int64_t in, std::int64_t out, bool bias) {
  nn::Linear made(in, out, bias);
  made.weight = Parameter({out, in}, init::normal(0, 0.02));
  if (bias) made.bias = Parameter({out});
  return made;
}

struct Block {
  Block(const DecoderSize& size, const Variant& variant)
      : before_attention(size.width),
        before_mlp(size.width),
        out(layer(size.width, size.width, false)),
        up(layer(size.width, 4 * size.width, true)),
        down(layer(4 * size.width, size.width, true)),
        heads(size.heads),
        gelu_mlp(size.gelu),
        stored_weights(variant.stored_attention) {
    const int products = variant.joint_projection ? 1 : 3;
    for (int i = 0; i < products; ++i)
      in.push_back(layer(size.width, 3 / products * size.width, false));
  }

  nn::LayerNorm before_attention, before_mlp;
  std::vector<nn::Linear> in;  // one layer each for queries, keys and values, or a joint one
  nn::Linear out, up, down;
  std::int64_t heads;
  bool gelu_mlp, stored_weights;
  TG_MODULE(before_attention, before_mlp, in, out, up, down)

  [[nodiscard]] Tensor by_heads(Tensor x) const {
    return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), 1, 2);
  }
  [[nodiscard]] Tensor attend(Tensor q, Tensor k, Tensor v) const {
    if (!stored_weights) return scaled_dot_product_attention(q, k, v, {.causal = true});
    const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
    const Tensor allowed = causal_mask(q.size(-2), k.size(-2));
    return matmul(masked_softmax(matmul(q * scale, transpose(k)), allowed), v);
  }
  Tensor operator()(Tensor x) const {
    const Tensor h = before_attention(x);
    std::vector<Tensor> made;
    for (const nn::Linear& each : in) made.push_back(each(h));
    if (made.size() == 1) made = chunk(made[0], 3, -1);
    const Tensor mixed = attend(by_heads(made[0]), by_heads(made[1]), by_heads(made[2]));
    x = x + out(reshape(transpose(mixed, 1, 2), x.shape()));
    const Tensor wide = up(before_mlp(x));
    return x + down(gelu_mlp ? gelu(wide) : relu(wide));
  }
};

struct Decoder {
  Decoder(const DecoderSize& size, const Variant& variant)
      : symbols({size.vocabulary, size.width}, init::normal(0, 0.02)),
        places({size.length, size.width}, init::normal(0, 0.02)),
        last(size.width) {
    for (std::int64_t i = 0; i < size.layers; ++i) blocks.emplace_back(size, variant);
  }
  Parameter symbols, places;
  std::vector<Block> blocks;
  nn::LayerNorm last;
  TG_MODULE(symbols, places, blocks, last)
  // i32 [B, T] -> logits [B, T, symbols]
  Tensor operator()(Tensor text) const {
    Tensor x = embedding(text, symbols) + places;
    for (const Block& block : blocks) x = block(x);
    return linear(last(x), symbols);
  }
};

// ---- data ------------------------------------------------------------------------------------

std::vector<float> random_floats(std::int64_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> draw(0, 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = draw(random);
  return values;
}

constexpr std::int64_t kIgnored = -100;  // a target that is not counted

std::vector<Column> texts(const DecoderSize& size, std::int64_t rows) {
  std::mt19937 random(1);
  std::vector<std::int32_t> text(static_cast<std::size_t>(rows * size.length)), next = text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::int64_t place = static_cast<std::int64_t>(i) % size.length;
    text[i] = static_cast<std::int32_t>(random() % static_cast<unsigned>(size.vocabulary));
    next[i] = place < size.length - size.answers
                  ? static_cast<std::int32_t>(kIgnored)
                  : static_cast<std::int32_t>(random() % static_cast<unsigned>(size.vocabulary));
  }
  return {{{"text", {size.length}, i32}, {}, std::move(text)},
          {{"next", {size.length}, i32}, {}, std::move(next)}};
}

// ---- workloads -------------------------------------------------------------------------------

struct Setup {
  std::string name;
  Feeding feeding = Feeding::kHost;
  CompileOptions options;  // except inputs and data
  std::vector<Column> columns;
  std::int64_t rows = 0, batch = 0;
  int steps_at_once = 200;
};

template <class Model, class Loss>
Workload assembled(Setup setup, Model model, Loss loss) {
  using Clock = std::chrono::steady_clock;
  CompileOptions& options = setup.options;
  const bool on_device = setup.feeding == Feeding::kDevice;
  for (const Column& column : setup.columns) {
    if (on_device) options.dataset.push_back(column.shaped(setup.rows));
    if (!on_device) options.inputs.push_back(column.shaped(setup.batch));
  }
  if (on_device) options.batch = setup.batch;
  const Clock::time_point start = Clock::now();
  const Trainer<Model> made = compile(std::move(model), loss, options);
  const std::chrono::duration<double, std::milli> spent = Clock::now() - start;
  AnyTrainer trainer = made;  // keeps the model alive  NOLINT(cppcoreguidelines-slicing)
  if (on_device) {
    for (const Column& column : setup.columns)
      trainer.upload_data(column.spec.name, column.slice(0, setup.rows));
  }
  return {std::move(setup.name), std::move(trainer), std::move(setup.columns), setup.batch,
          setup.feeding,         setup.rows,         setup.steps_at_once,      spent.count()};
}

Workload mlp_sin(Setup setup) {
  constexpr std::int64_t kRows = 1 << 16;
  setup.rows = kRows;
  if (setup.batch == 0) setup.batch = 256;
  setup.options.optimizer = optim::Adam{.lr = 1e-3};
  setup.columns = {{{"x", {1}}, random_floats(kRows), {}}, {{"y", {1}}, random_floats(kRows), {}}};
  return assembled(std::move(setup), Mlp({1, 64, 64, 1}),
                   [](const Mlp& net, const Inputs& in) { return mse(net(in["x"]), in["y"]); });
}

// A classifier of ten classes; `row` is the shape of an image.
template <class Model>
Workload classifier(Setup setup, const Model& model, std::int64_t batch, const Shape& row) {
  setup.rows = 16384;
  if (setup.batch == 0) setup.batch = batch;
  setup.options.optimizer = optim::AdamW{.lr = 1e-3};
  std::vector<std::int32_t> labels(static_cast<std::size_t>(setup.rows));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 10);
  setup.columns = {{{"x", row}, random_floats(setup.rows * numel(row)), {}},
                   {{"y", {}, i32}, {}, std::move(labels)}};
  return assembled(std::move(setup), model, [](const Model& net, const Inputs& in) {
    return cross_entropy(net(in["x"]), in["y"]);
  });
}

Workload decoder(Setup setup, DecoderSize size, const Variant& variant) {
  if (variant.layers > 0) size.layers = variant.layers;
  if (variant.length > 0) {
    size.length = variant.length;
    size.answers = std::min(size.answers, size.length);
  }
  if (setup.batch == 0) setup.batch = size.batch;
  setup.rows = 8 * setup.batch;
  setup.steps_at_once = size.length > 8 ? 8 : 50;
  setup.options.optimizer = optim::AdamW{.lr = 1e-3};
  if (size.clip_norm > 0) setup.options.clip_grad_norm = size.clip_norm;
  setup.columns = texts(size, setup.rows);
  return assembled(std::move(setup), Decoder(size, variant),
                   [](const Decoder& net, const Inputs& in) {
                     return cross_entropy(net(in["text"]), in["next"], {.ignore_index = kIgnored});
                   });
}

// A Mamba language model. `variant` can set the number of layers and the length.
Workload mamba(Setup setup, nn::LanguageModelConfig config, std::int64_t length,
               const Variant& variant) {
  if (variant.layers > 0) config.n_layer = variant.layers;
  DecoderSize size = {
      config.vocab_size, config.d_model, config.n_layer, 0, length, 8, false, 0, length};
  if (variant.length > 0) size.length = size.answers = variant.length;
  if (setup.batch == 0) setup.batch = size.batch;
  setup.rows = 8 * setup.batch;
  setup.steps_at_once = 8;
  setup.options.optimizer = optim::AdamW{.lr = 1e-3};
  setup.columns = texts(size, setup.rows);
  return assembled(std::move(setup), nn::LanguageModel(config),
                   [whole = variant.whole_logits](const nn::LanguageModel& net, const Inputs& in) {
                     return whole ? cross_entropy(net(in["text"]), in["next"])
                                  : net.loss(in["text"], in["next"]);
                   });
}

}  // namespace

nn::Sequential mnist_cnn() {
  return nn::Sequential(nn::Conv2d(1, 16, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Conv2d(16, 32, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Flatten(), nn::Linear(1568, 64), nn::ReLU(), nn::Linear(64, 10));
}

nn::LanguageModelConfig small_mamba() { return {.vocab_size = 65, .d_model = 128, .n_layer = 2}; }
nn::LanguageModelConfig mamba_130m() {
  return {.vocab_size = 50280, .d_model = 768, .n_layer = 24};
}

HostView Column::slice(std::int64_t first, std::int64_t rows) const {
  const auto from = static_cast<std::size_t>(first * numel(spec.shape));
  const auto count = static_cast<std::size_t>(rows * numel(spec.shape));
  return spec.dtype == f32 ? HostView(std::span(floats).subspan(from, count))
                           : HostView(std::span(ints).subspan(from, count));
}

InputSpec Column::shaped(std::int64_t rows) const {
  InputSpec shaped = spec;
  shaped.shape.insert(shaped.shape.begin(), rows);
  return shaped;
}

FeedView Workload::feed(std::int64_t number) const {
  FeedView feed;
  if (feeding == Feeding::kDevice) return feed;
  const std::int64_t first = number % (rows / batch) * batch;
  for (const Column& column : columns) feed.add(column.spec.name, column.slice(first, batch));
  return feed;
}

void Workload::go() {
  switch (feeding) {
    case Feeding::kHost: trainer.step(feed()); break;
    case Feeding::kDevice: trainer.run(steps_at_once); break;
    case Feeding::kStream:
      for (int i = 0; i < steps_at_once; ++i) trainer.submit(feed(i));
      trainer.losses();
      break;
  }
}

std::int64_t Workload::parameters() const {
  std::int64_t count = 0;
  for (const auto& [parameter, values] : trainer.download_params()) count += numel(values.shape);
  return count;
}

const std::vector<std::string>& workload_names() {
  static const std::vector<std::string> names = {"mlp-sin",        "fashion-mlp", "fashion-cnn",
                                                 "mnist-cnn",      "addition",    "char-gpt",
                                                 "char-gpt-small", "mamba1"};
  return names;
}

Workload make_workload(const std::string& name, Feeding feeding, const DeviceOptions& device,
                       const Variant& variant) {
  Setup setup;
  setup.name = name + (variant.stored_attention ? " (weights stored)" : "") +
               (variant.joint_projection ? " (q, k, v at once)" : "") +
               (variant.whole_logits ? " (whole logits)" : "") +
               (variant.mixed ? " (mixed precision)" : "") +
               (device.matmul_precision == MatmulPrecision::kF16x3 ? " (f16x3)" : "");
  setup.options.mixed_precision = variant.mixed;
  setup.options.recovery.snapshot_steps = variant.snapshot_steps;
  setup.feeding = feeding;
  setup.options.device = device;
  setup.options.distributed = variant.ranks;
  setup.options.shard_optimizer = variant.ranks && variant.shard == "optimizer";
  setup.options.shard_parameters = variant.ranks && variant.shard == "parameters";
  setup.batch = variant.batch;
  if (name == "mlp-sin") return mlp_sin(std::move(setup));
  if (name == "fashion-mlp") {
    return classifier(std::move(setup), Mlp({784, 256, 128, 10}), 128, {784});
  }
  if (name == "fashion-cnn" || name == "mnist-cnn") {
    if (name == "mnist-cnn") setup.options.clip_grad_norm = 1;
    return classifier(std::move(setup), mnist_cnn(), 64, {1, 28, 28});
  }
  if (name == "addition") return decoder(std::move(setup), kAddition, variant);
  if (name == "char-gpt") return decoder(std::move(setup), kGpt, variant);
  if (name == "gpt2") return decoder(std::move(setup), kGpt2, variant);
  if (name == "gpt2-50k") return decoder(std::move(setup), kGpt2Words, variant);
  if (name == "gpt-long") return decoder(std::move(setup), kLongGpt, variant);
  if (name == "char-gpt-small") return decoder(std::move(setup), kSmallGpt, variant);
  if (name == "mamba1") return mamba(std::move(setup), small_mamba(), 64, variant);
  if (name == "mamba-130m") return mamba(std::move(setup), mamba_130m(), 1024, variant);
  throw std::invalid_argument("unknown workload '" + name + "'");
}

}  // namespace tensorgrad::bench
