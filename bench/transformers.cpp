// SPDX-License-Identifier: MIT
// Decoders: the two-digit addition transformer, and character models of two sizes.
#include <cmath>
#include <random>

#include <tensorgrad/tensorgrad.h>

#include "steps.h"
#include "workloads.h"

namespace tensorgrad::bench {
namespace {

struct DecoderSize {
  std::string name;
  std::int64_t vocabulary, width, layers, heads, length, batch;
  bool gelu;
  double clip_norm;      // 0: none
  std::int64_t answers;  // of a text, so many symbols at its end count in the loss
};

const DecoderSize kAddition = {"addition", 12, 64, 3, 4, 8, 128, false, 1, 3};
const DecoderSize kGpt = {"char-gpt", 65, 384, 6, 6, 256, 64, true, 1, 256};
const DecoderSize kSmallGpt = {"char-gpt-small", 65, 128, 4, 4, 64, 8, true, 0, 64};

nn::Linear layer(std::int64_t in, std::int64_t out, bool bias) {
  nn::Linear made(in, out, bias);
  made.weight = Parameter({out, in}, init::normal(0, 0.02));
  if (bias) made.bias = Parameter({out});
  return made;
}

struct Block {
  Block(const DecoderSize& size, bool stored)
      : before_attention(size.width),
        before_mlp(size.width),
        query(layer(size.width, size.width, false)),
        key(layer(size.width, size.width, false)),
        value(layer(size.width, size.width, false)),
        out(layer(size.width, size.width, false)),
        up(layer(size.width, 4 * size.width, true)),
        down(layer(4 * size.width, size.width, true)),
        heads(size.heads),
        gelu_mlp(size.gelu),
        stored_weights(stored) {}

  nn::LayerNorm before_attention, before_mlp;
  nn::Linear query, key, value, out, up, down;
  std::int64_t heads;
  bool gelu_mlp, stored_weights;
  TG_MODULE(before_attention, before_mlp, query, key, value, out, up, down)

  [[nodiscard]] Tensor split(Tensor x) const {
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
    const Tensor mixed = attend(split(query(h)), split(key(h)), split(value(h)));
    x = x + out(reshape(transpose(mixed, 1, 2), x.shape()));
    const Tensor wide = up(before_mlp(x));
    return x + down(gelu_mlp ? gelu(wide) : relu(wide));
  }
};

constexpr std::int64_t kIgnored = -100;  // a target that is not counted

struct Decoder {
  Decoder(const DecoderSize& size, bool stored)
      : symbols({size.vocabulary, size.width}, init::normal(0, 0.02)),
        places({size.length, size.width}, init::normal(0, 0.02)),
        last(size.width) {
    for (std::int64_t i = 0; i < size.layers; ++i) blocks.emplace_back(size, stored);
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

void decoder(const Options& options, const std::string& device, const DecoderSize& size) {
  const std::int64_t rows = 8 * size.batch;
  std::mt19937 random(1);
  std::vector<std::int32_t> text(static_cast<std::size_t>(rows * size.length)), next = text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::int64_t place = static_cast<std::int64_t>(i) % size.length;
    text[i] = static_cast<std::int32_t>(random() % static_cast<unsigned>(size.vocabulary));
    next[i] = place < size.length - size.answers
                  ? static_cast<std::int32_t>(kIgnored)
                  : static_cast<std::int32_t>(random() % static_cast<unsigned>(size.vocabulary));
  }
  const auto loss = [](const Decoder& net, const Inputs& in) {
    return cross_entropy(net(in["text"]), in["next"], {.ignore_index = kIgnored});
  };
  CompileOptions spec;
  spec.optimizer = optim::AdamW{.lr = 1e-3};
  if (size.clip_norm > 0) spec.clip_grad_norm = size.clip_norm;
  spec.device = device_options(options, device);
  spec.inputs = {{"text", {size.batch, size.length}, i32},
                 {"next", {size.batch, size.length}, i32}};
  const Decoder model(size, options.stored_attention);
  const std::string name = size.name + (options.stored_attention ? " (weights stored)" : "");
  const auto count = size.batch * size.length;
  {
    auto trainer = compile(model, loss, spec);
    const std::vector<std::int32_t> x(text.begin(), text.begin() + count);
    const std::vector<std::int32_t> y(next.begin(), next.begin() + count);
    const double us =
        median_microseconds(options.seconds, 1, [&] { trainer.step({{"text", x}, {"next", y}}); });
    report(name, "step", trainer, us);
  }
  spec.dataset = std::move(spec.inputs);
  spec.inputs.clear();
  for (InputSpec& entry : spec.dataset) entry.shape[0] = rows;
  spec.batch = size.batch;
  auto trainer = compile(model, loss, spec);
  trainer.upload_data("text", text);
  trainer.upload_data("next", next);
  in_a_go(options, name, trainer, size.length > 8 ? 8 : 50);
}

}  // namespace

void addition(const Options& options, const std::string& device) {
  decoder(options, device, kAddition);
}

void char_gpt(const Options& options, const std::string& device) {
  decoder(options, device, device == "cpu" ? kSmallGpt : kGpt);
}

}  // namespace tensorgrad::bench
