// SPDX-License-Identifier: MIT
// The output norm of Mamba-3, computed in double precision from the output of the layer without it.
// Without the norm, each channel of each rank is only multiplied by its gate.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using nn::OutNorm;

constexpr std::int64_t kNormBatch = 2, kNormLength = 7;
constexpr std::size_t kWide = 16, kHeads = 2, kEach = 8;  // d_inner equals d_model
constexpr double kNormEpsilon = 0.03;
using Values = std::vector<double>;
using Weights = std::map<std::string, HostTensor>;

CompiledFunction norm_layer(std::int64_t ranks, OutNorm norm, const std::string& device) {
  const nn::Mamba3 net(static_cast<std::int64_t>(kWide),
                       {.d_state = 6,
                        .expand = 1,
                        .head_dim = static_cast<std::int64_t>(kEach),
                        .ranks = ranks,
                        .chunk = 4,
                        .out_norm = norm,
                        .norm_epsilon = kNormEpsilon});
  return compile_function(net, [](const nn::Mamba3& of, const Inputs& in) { return of(in["x"]); },
                          {.inputs = {{"x", {kNormBatch, kNormLength, std::int64_t{kWide}}}},
                           .device = {.kind = device, .allow_software = true},
                           .seed = 5});
}

std::vector<float> drawn_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(random() % 2001) / 1000.0F - 1;
  return values;
}

// Returns weights that differ from the initial ones. out_proj is the identity.
Weights some_weights(const CompiledFunction& forward) {
  Weights weights = forward.download_params();
  unsigned seed = 9;
  for (auto& [name, tensor] : weights) {
    std::vector<float> values = tensor.floats();
    const std::vector<float> more = drawn_values(values.size(), ++seed);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.4F * more[i];
    if (name == "out_proj.weight") {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = i % (kWide + 1) == 0 ? 1.0F : 0.0F;
    }
    tensor = HostTensor::from(tensor.shape, values);
  }
  return weights;
}

// Values of a layer by rank, step and channel.
class NormParts {
 public:
  explicit NormParts(std::size_t ranks, const Weights& weights, std::vector<float> x)
      : ranks_(ranks), weights_(weights), x_(std::move(x)) {
    CompiledFunction plain = norm_layer(static_cast<std::int64_t>(ranks), OutNorm::kNone, "cpu");
    for (std::size_t r = 0; r < ranks; ++r) {
      Weights of_rank = weights;
      of_rank.erase("norm.weight");
      if (ranks > 1) {  // mimo_out is 1 for rank r, else 0
        std::vector<float> alone(kHeads * ranks * kEach);
        for (std::size_t i = 0; i < alone.size(); ++i)
          alone[i] = i / kEach % ranks == r ? 1.0F : 0.0F;
        of_rank.at("mimo_out") = HostTensor::from(weights.at("mimo_out").shape, alone);
      }
      plain.upload_params(of_rank);
      gated_.push_back(plain({{"x", x_}}).floats());
    }
  }

  [[nodiscard]] std::size_t steps() const { return x_.size() / kWide; }
  [[nodiscard]] double gated(std::size_t r, std::size_t step, std::size_t channel) const {
    return gated_[r][step * kWide + channel];
  }
  // Returns silu(z) of a rank. The first rows of in_proj compute z.
  [[nodiscard]] double gate(std::size_t r, std::size_t step, std::size_t channel) const {
    const std::vector<float>& rows = floats("in_proj.weight");
    double z = 0;
    for (std::size_t i = 0; i < kWide; ++i)
      z += static_cast<double>(rows[channel * kWide + i]) * x_[step * kWide + i];
    z *= factor("mimo_z", r, channel);
    return z / (1 + std::exp(-z));
  }
  [[nodiscard]] double factor(const std::string& name, std::size_t r, std::size_t channel) const {
    return ranks_ == 1 ? 1 : floats(name)[(channel / kEach * ranks_ + r) * kEach + channel % kEach];
  }
  [[nodiscard]] double weight(std::size_t channel) const { return floats("norm.weight")[channel]; }

 private:
  [[nodiscard]] const std::vector<float>& floats(const std::string& name) const {
    auto found = cache_.find(name);
    if (found == cache_.end()) found = cache_.emplace(name, weights_.at(name).floats()).first;
    return found->second;
  }

  std::size_t ranks_;
  const Weights& weights_;
  std::vector<float> x_;
  std::vector<std::vector<float>> gated_;
  mutable std::map<std::string, std::vector<float>> cache_;
};

// Returns 1 / sqrt(mean square + kNormEpsilon) of `count` values.
template <class Value>
double evened(std::size_t count, const Value& value) {
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += value(i) * value(i);
  return 1 / std::sqrt(squares / static_cast<double>(count) + kNormEpsilon);
}

Values before_gate(const NormParts& parts, std::size_t ranks) {
  Values want(parts.steps() * kWide, 0);
  for (std::size_t step = 0; step < parts.steps(); ++step) {
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto open = [&](std::size_t channel) {
        return parts.gated(r, step, channel) / parts.gate(r, step, channel);
      };
      for (std::size_t channel = 0; channel < kWide; ++channel) {
        const std::size_t head = channel / kEach * kEach;
        const double scale = evened(kEach, [&](std::size_t i) { return open(head + i); });
        want[step * kWide + channel] += open(channel) * scale * parts.weight(channel) *
                                        parts.gate(r, step, channel) *
                                        parts.factor("mimo_out", r, channel);
      }
    }
  }
  return want;
}

Values after_gate(const NormParts& parts, std::size_t ranks) {
  Values want(parts.steps() * kWide, 0);
  for (std::size_t step = 0; step < parts.steps(); ++step) {
    const auto y = [&](std::size_t channel) {
      double sum = 0;
      for (std::size_t r = 0; r < ranks; ++r)
        sum += parts.gated(r, step, channel) * parts.factor("mimo_out", r, channel);
      return sum;
    };
    const double scale = evened(kWide, y);
    for (std::size_t channel = 0; channel < kWide; ++channel)
      want[step * kWide + channel] = y(channel) * scale * parts.weight(channel);
  }
  return want;
}

void has_the_norm(const std::string& device) {
  for (const std::size_t ranks : {1U, 2U}) {
    for (const OutNorm norm : {OutNorm::kBeforeGate, OutNorm::kAfterGate}) {
      CompiledFunction forward = norm_layer(static_cast<std::int64_t>(ranks), norm, device);
      EXPECT_EQ(forward.download_params().at("norm.weight").floats(), std::vector<float>(kWide, 1));
      const Weights weights = some_weights(forward);
      forward.upload_params(weights);
      const std::vector<float> x = drawn_values(kNormBatch * kNormLength * kWide, 3);
      const NormParts parts(ranks, weights, x);
      const Values want =
          norm == OutNorm::kBeforeGate ? before_gate(parts, ranks) : after_gate(parts, ranks);
      const std::vector<float> got = forward({{"x", x}}).floats();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], want[i], 2e-5 * (1 + std::abs(want[i])))
            << ranks << " ranks, norm " << static_cast<int>(norm) << ", " << i;
      }
    }
  }
}

TEST(Mamba3Norm, normalizes_per_head_before_the_gate_or_all_after_it_on_cpu) {
  has_the_norm("cpu");
}
TEST(Mamba3Norm, normalizes_per_head_before_the_gate_or_all_after_it_on_webgpu) {
  has_the_norm("webgpu");
}

TEST(Mamba3Norm, is_off_by_default) {
  EXPECT_FALSE(norm_layer(2, {}, "cpu").download_params().contains("norm.weight"));
  EXPECT_EQ(nn::Mamba3Options{}.out_norm, OutNorm::kNone);
}

}  // namespace
}  // namespace tensorgrad::testing
