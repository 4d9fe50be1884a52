// SPDX-License-Identifier: MIT
// Two small models used by several tests: a classifier and a language model with attention.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

struct Mlp {
  nn::Linear hidden{64, 32}, out{32, 10};
  TG_MODULE(hidden, out)
};

inline Tensor mlp_loss(const Mlp& net, const Inputs& in) {
  return cross_entropy(net.out(relu(net.hidden(in["x"]))), in["t"]);
}

inline std::vector<InputSpec> mlp_inputs() { return {{"x", {16, 64}}, {"t", {16}, i32}}; }

struct LanguageModel {
  static constexpr std::int64_t kVocab = 17, kWidth = 16, kLength = 8, kHeads = 2, kBatch = 4;

  nn::Embedding tokens{kVocab, kWidth}, places{kLength, kWidth};
  nn::LayerNorm norm1{kWidth}, norm2{kWidth}, norm3{kWidth};
  nn::Linear qkv{kWidth, 3 * kWidth, false}, joined{kWidth, kWidth}, up{kWidth, 4 * kWidth},
      down{4 * kWidth, kWidth};
  TG_MODULE(tokens, places, norm1, norm2, norm3, qkv, joined, up, down)

  Tensor attention(Tensor x) const {
    const Tensor parts =
        permute(reshape(qkv(x), {kBatch, kLength, 3, kHeads, kWidth / kHeads}), {2, 0, 3, 1, 4});
    const auto part = [&](int i) { return squeeze(narrow(parts, 0, i, 1), 0); };
    constexpr int kHeadWidth = kWidth / kHeads;
    const Tensor scores = matmul(part(0), transpose(part(1))) / std::sqrt(1.0 * kHeadWidth);
    const Shape square = {kLength, kLength};
    const Tensor seen = iota(square, 1) <= iota(square, 0);
    const Tensor weights = softmax(where(seen, scores, -std::numeric_limits<double>::infinity()));
    return joined(reshape(transpose(matmul(weights, part(2)), 1, 2), {kBatch, kLength, kWidth}));
  }

  Tensor operator()(Tensor text) const {
    Tensor x = tokens(text) + places.weight;
    x = x + attention(norm1(x));
    x = x + down(gelu(up(norm2(x))));
    return matmul(norm3(x), transpose(tokens.weight));
  }
};

inline Tensor language_model_loss(const LanguageModel& model, const Inputs& in) {
  return cross_entropy(model(in["x"]), in["t"]);
}

inline std::vector<InputSpec> language_model_inputs() {
  const Shape text = {LanguageModel::kBatch, LanguageModel::kLength};
  return {{"x", text, i32}, {"t", text, i32}};
}

}  // namespace tensorgrad::testing
