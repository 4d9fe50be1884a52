// SPDX-License-Identifier: MIT
// Two models for training in f32 and in mixed precision, with data they can learn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/shared.h"

namespace tensorgrad::testing {

inline DeviceOptions device_of(const std::string& kind) {
  return {.kind = kind, .threads = 2, .allow_software = true};
}

inline std::vector<std::int32_t> symbols(std::int64_t count, unsigned seed, std::int32_t most) {
  std::vector<std::int32_t> values;
  for (const float each : numbers(count, seed))
    values.push_back(static_cast<std::int32_t>((each + 1) * 0.5F * static_cast<float>(most)));
  return values;
}

// A decoder with attention that does not store its weights, and a tied head.
struct Gpt {
  static constexpr std::int64_t kVocab = 24, kWidth = 32, kLength = 16, kBatch = 4, kHeads = 4;
  nn::Embedding tokens{kVocab, kWidth}, places{kLength, kWidth};
  nn::LayerNorm before{kWidth}, middle{kWidth}, last{kWidth};
  nn::Linear q{kWidth, kWidth, false}, k{kWidth, kWidth, false}, v{kWidth, kWidth, false},
      out{kWidth, kWidth, false}, up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};
  TG_MODULE(tokens, places, before, middle, last, q, k, v, out, up, down)

  static Tensor heads(Tensor x) {
    return transpose(reshape(x, {kBatch, kLength, kHeads, kWidth / kHeads}), 1, 2);
  }
  Tensor operator()(Tensor text) const {
    Tensor x = tokens(text) + places.weight;
    const Tensor h = before(x);
    const Tensor o =
        scaled_dot_product_attention(heads(q(h)), heads(k(h)), heads(v(h)), {.causal = true});
    x = x + out(reshape(transpose(o, 1, 2), x.shape()));
    x = x + down(gelu(up(middle(x))));
    return linear(last(x), tokens.weight);
  }
};

struct Cnn {
  nn::Conv2d first{1, 8, 3, {.padding = 1}}, second{8, 16, 3, {.padding = 1}};
  nn::BatchNorm2d norm{8};
  nn::Linear out{16 * 7 * 7, 10};
  TG_MODULE(first, second, norm, out)
  Tensor operator()(Tensor x) const {
    x = max_pool2d(relu(norm(first(x))), {2, 2});
    x = max_pool2d(relu(second(x)), {2, 2});
    return out(flatten(x, 1));
  }
};

struct Data {
  std::vector<InputSpec> dataset;
  std::int64_t batch;
  std::function<void(TrainerBase&)> give;
};

inline Data gpt_data() {
  const Shape rows = {32, Gpt::kLength};
  return {{{"x", rows, i32}, {"t", rows, i32}}, Gpt::kBatch, [rows](TrainerBase& trainer) {
            // The next symbol is a function of the current one, so there is something to learn.
            std::vector<std::int32_t> text = symbols(numel(rows), 3, Gpt::kVocab), next;
            next.reserve(text.size());
            for (const std::int32_t each : text) next.push_back((each * 5 + 3) % Gpt::kVocab);
            trainer.upload_data("x", text);
            trainer.upload_data("t", next);
          }};
}

inline Data cnn_data() {
  return {{{"x", {64, 1, 28, 28}}, {"t", {64}, i32}}, 16, [](TrainerBase& trainer) {
            std::vector<float> pixels = numbers(64LL * 28 * 28, 5);
            const std::vector<std::int32_t> labels = symbols(64, 9, 10);
            for (std::size_t i = 0; i < labels.size(); ++i) {  // a bright row for each class
              for (int c = 0; c < 28; ++c)
                pixels[(i * 28 + 2 * static_cast<std::size_t>(labels[i])) * 28 +
                       static_cast<std::size_t>(c)] += 3;
            }
            trainer.upload_data("x", pixels);
            trainer.upload_data("t", labels);
          }};
}

inline CompileOptions options_of(const Data& data, const std::string& kind, bool mixed) {
  return {.dataset = data.dataset,
          .batch = data.batch,
          .optimizer = optim::AdamW{.lr = 3e-3},
          .clip_grad_norm = 1,
          .mixed_precision = mixed,
          .seed = 2,
          .device = device_of(kind)};
}

template <class Model>
Trainer<Model> trainer_of(const Data& data, const CompileOptions& options) {
  auto trainer = compile(
      Model{},
      [](const Model& net, const Inputs& in) { return cross_entropy(net(in["x"]), in["t"]); },
      options);
  data.give(trainer);
  return trainer;
}

}  // namespace tensorgrad::testing
