// SPDX-License-Identifier: MIT
// The cost and the memory of a step are linear in samples and layers, and for Mamba also in the
// length of the text. A quadratic part would be detected. Costs are counts of plans, mostly for a
// large GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "large_gpu.h"
#include "models.h"

namespace tensorgrad::testing {
namespace {

using bench::Feeding;
using bench::Variant;

struct Cost {
  double flops = 0, moved = 0, peak = 0;
};

Cost cost_of(const std::string& workload, const Variant& variant) {
  bench::Workload made = bench::make_workload(workload, Feeding::kHost, large_gpu(), variant);
  const Profile profile = made.trainer.profile(made.feed());
  Cost cost;
  for (const LaunchProfile& launch : profile.launches) {
    cost.flops += static_cast<double>(launch.flops);
    cost.moved += static_cast<double>(launch.bytes);
  }
  cost.peak = static_cast<double>(profile.peak_bytes);
  return cost;
}

// Returns the largest relative distance of the costs from the line through the first and the last
// one.
double off_the_line(const std::vector<std::int64_t>& sizes, const std::vector<double>& costs) {
  const auto at = [&](std::size_t i) { return static_cast<double>(sizes[i]); };
  double most = 0;
  for (std::size_t i = 1; i + 1 < sizes.size(); ++i) {
    const double slope = (costs.back() - costs[0]) / (at(sizes.size() - 1) - at(0));
    const double expected = costs[0] + slope * (at(i) - at(0));
    most = std::max(most, std::abs(costs[i] - expected) / costs[i]);
  }
  EXPECT_GT(costs.back(), costs[0]);
  return most;
}

constexpr double kFewPercent = 0.03;

// Expects that the costs of `variant(size)` are linear in the size.
void expect_linear(const std::string& workload, const std::vector<std::int64_t>& sizes,
                   Variant (*variant)(std::int64_t)) {
  std::vector<double> flops, moved;
  for (const std::int64_t size : sizes) {
    const Cost cost = cost_of(workload, variant(size));
    flops.push_back(cost.flops);
    moved.push_back(cost.moved);
  }
  EXPECT_LT(off_the_line(sizes, flops), kFewPercent) << workload;
  EXPECT_LT(off_the_line(sizes, moved), kFewPercent) << workload;
}

// No batch is large enough for split-K, which would also move the partial products.
TEST(LinearCost, of_a_step_in_its_batch) {
  const auto batch = [](std::int64_t size) { return Variant{.batch = size}; };
  expect_linear("mlp-sin", {64, 128, 256, 1024}, batch);
  expect_linear("mnist-cnn", {16, 32, 64, 256}, batch);
  expect_linear("char-gpt-small", {4, 8, 16, 32}, batch);
  expect_linear("mamba1", {4, 8, 16, 32}, batch);
}

TEST(LinearCost, of_a_step_in_its_layers) {
  const auto layers = [](std::int64_t size) { return Variant{.layers = size}; };
  for (const std::string workload : {"char-gpt-small", "mamba1"})
    expect_linear(workload, {2, 4, 6, 10}, layers);
}

double peak_off_the_line(bool stored_attention) {
  // From 2^20 elements on (4096 positions), cheap values are recomputed, which takes less memory.
  const std::vector<std::int64_t> lengths = {256, 1024, 2048, 3584};
  std::vector<double> peaks;
  for (const std::int64_t length : lengths) {
    peaks.push_back(cost_of("char-gpt-small",
                            {.batch = 2, .length = length, .stored_attention = stored_attention})
                        .peak);
  }
  return off_the_line(lengths, peaks);
}

TEST(LinearCost, of_the_memory_of_attention_in_its_length) {
  EXPECT_LT(peak_off_the_line(false), kFewPercent);
  EXPECT_GT(peak_off_the_line(true), 0.5);  // if its weights are stored
}

// Returns the cost of a step of two narrow layers over one text.
Cost cost_of_text(nn::MixerKind kind, std::int64_t length, const DeviceOptions& device) {
  nn::LanguageModelConfig config{
      .vocab_size = 65, .d_model = 32, .n_layer = 2, .layers = {kind, kind}};
  config.mamba2 = {.d_state = 16, .head_dim = 16};
  config.mamba3 = {.d_state = 16, .head_dim = 16, .ranks = 2};
  auto trainer = compile(nn::LanguageModel(config),
                         [](const nn::LanguageModel& net, const Inputs& in) {
                           return cross_entropy(net(in["text"]), in["next"]);
                         },
                         {.inputs = {{"text", {1, length}, i32}, {"next", {1, length}, i32}},
                          .optimizer = optim::AdamW{},
                          .device = device});
  Cost cost;
  cost.peak = static_cast<double>(trainer.report().peak_bytes);
  if (device.kind == "cpu") return cost;  // the other counts would need a run
  const std::vector<std::int32_t> text(static_cast<std::size_t>(length));
  for (const LaunchProfile& launch : trainer.profile({{"text", text}, {"next", text}}).launches) {
    cost.flops += static_cast<double>(launch.flops);
    cost.moved += static_cast<double>(launch.bytes);
  }
  return cost;
}

const std::vector<std::int64_t> kLengths = {64, 128, 256, 512, 1024, 2048, 4096, 8192};

std::vector<Cost> costs_of_lengths(nn::MixerKind kind, const DeviceOptions& device) {
  std::vector<Cost> costs;
  costs.reserve(kLengths.size());
  for (const std::int64_t length : kLengths) costs.push_back(cost_of_text(kind, length, device));
  return costs;
}

// Twice the length costs at most twice as much. It may cost less: some costs do not depend on the
// length, and if there are many elements, some are recomputed rather than saved. The second chunk,
// and the second segment of a scan, which is processed again, add a few percent once.
void expect_in_proportion(const std::vector<Cost>& costs, double Cost::* part, const char* what) {
  for (std::size_t i = 1; i < costs.size(); ++i) {
    const double before = costs[i - 1].*part, now = costs[i].*part;
    EXPECT_GT(now, 1.2 * before) << what << " at " << kLengths[i];
    EXPECT_LT(now, 2.2 * before) << what << " at " << kLengths[i];
    const std::int64_t times = kLengths[i] / kLengths[0];
    EXPECT_LT(now, 1.1 * static_cast<double>(times) * (costs[0].*part))
        << what << " at " << kLengths[i];
  }
  EXPECT_LT(costs.back().*part, 2.02 * (costs[costs.size() - 2].*part)) << what;
}

void expect_linear_in_length(nn::MixerKind kind) {
  const std::vector<Cost> costs = costs_of_lengths(kind, large_gpu());
  expect_in_proportion(costs, &Cost::flops, "operations");
  expect_in_proportion(costs, &Cost::moved, "bytes moved");
  expect_in_proportion(costs, &Cost::peak, "peak bytes");
  expect_in_proportion(costs_of_lengths(kind, {.kind = "cpu", .threads = 1}), &Cost::peak,
                       "peak bytes on the CPU");
}

TEST(LinearCost, of_a_step_of_mamba1_in_its_length) {
  expect_linear_in_length(nn::MixerKind::kMamba1);
}
TEST(LinearCost, of_a_step_of_mamba2_in_its_length) {
  expect_linear_in_length(nn::MixerKind::kMamba2);
}
TEST(LinearCost, of_a_step_of_mamba3_in_its_length) {
  expect_linear_in_length(nn::MixerKind::kMamba3);
}
TEST(LinearCost, of_a_step_of_attention_in_its_length_is_of_memory_alone) {
  const std::vector<Cost> costs = costs_of_lengths(nn::MixerKind::kAttention, large_gpu());
  expect_in_proportion(costs, &Cost::peak, "peak bytes");
  EXPECT_GT(costs.back().flops, 3.5 * costs[costs.size() - 2].flops);
}

}  // namespace
}  // namespace tensorgrad::testing
