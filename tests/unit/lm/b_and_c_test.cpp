// SPDX-License-Identifier: MIT
// Rows that lm::train_only_bc() selects in Mamba-3. trainer_test.cpp tests Mamba and Mamba-2.
#include <gtest/gtest.h>

#include <utility>

#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

// If nothing is written to the states or nothing is read from them, their decay has no effect. This
// shows that the first half of the rows computes B and the second half C. The biases of B and C are
// set to 0.
TEST(BAndCAlone, selects_the_rows_of_b_and_c_in_mamba3) {
  const nn::LanguageModelConfig config = small_mamba(7, {nn::MixerKind::kMamba3}, 16);
  const std::string mixer = "backbone.layers.0.mixer.", name = mixer + "in_proj.weight";
  CompiledFunction forward = compile_function(
      nn::LanguageModel(config),
      [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {1, 9}, i32}}, .device = {.kind = "cpu"}, .seed = 2});
  auto weights = forward.download_params();
  for (const char* const bias : {"b_bias", "c_bias"}) {
    HostTensor& values = weights.at(mixer + bias);
    std::fill(values.bytes.begin(), values.bytes.end(), std::byte{0});
  }
  const Shape shape = weights.at(name).shape;
  const std::vector<std::int32_t> text = random_tokens(9, 7, 3);
  // Returns the logits if these rows are zero and, with `decays`, the decays are changed.
  const auto run = [&](std::int64_t begin, std::int64_t end, bool decays) {
    auto changed = weights;
    std::vector<float> matrix = weights.at(name).floats();
    std::fill(matrix.begin() + begin * shape[1], matrix.begin() + end * shape[1], 0.0F);
    changed[name] = HostTensor::from(shape, matrix);
    HostTensor& rates = changed.at(mixer + "A_bias");
    std::vector<float> values = rates.floats();
    for (float& v : values) v += decays ? 1.0F : 0.0F;
    rates = HostTensor::from(rates.shape, values);
    forward.upload_params(changed);
    return forward({{"tokens", text}}).floats();
  };
  const RowRange rows = lm::train_only_bc(config).at(0).rows(name, shape).at(0);
  const std::int64_t middle = (rows.begin + rows.end) / 2;
  for (const auto& [begin, end] : {std::pair(rows.begin, middle), std::pair(middle, rows.end)}) {
    EXPECT_EQ(run(begin, end, false), run(begin, end, true));
    EXPECT_NE(run(begin + 1, end, false), run(begin + 1, end, true)) << "its first row counts";
    EXPECT_NE(run(begin, end - 1, false), run(begin, end - 1, true)) << "its last row counts";
  }
}

TEST(BAndCAlone, PicksBAndCAndTheAttentionOfSharedBlocks) {
  nn::LanguageModelConfig config = small_mamba(7, {nn::MixerKind::kMamba2Shared}, 16);
  config.shared.adapter_rank = 3;
  config.shared.attention_adapters = true;
  const std::vector<ParamGroup> groups = lm::train_only_bc(config, true);
  ASSERT_EQ(groups.size(), 3U);
  const auto picked = [&](std::size_t group, const std::string& name) {
    return groups.at(group).params(name, {64, 12});
  };
  EXPECT_TRUE(picked(0, "backbone.layers.0.mixer.in_proj.weight"));
  EXPECT_FALSE(picked(0, "backbone.layers.0.mixer.out_proj.weight"));
  EXPECT_TRUE(picked(1, "backbone.shared.0.attention.out_proj.weight"));
  EXPECT_TRUE(picked(1, "backbone.layers.0.shared.k.up.weight"));
  EXPECT_FALSE(picked(1, "backbone.layers.0.shared.mlp.up.weight"));
  EXPECT_FALSE(picked(1, "backbone.shared.0.fc1.weight"));
}

TEST(BAndCAlone, PicksTheRowsOfALayerByItsOwnOptions) {
  nn::LanguageModelConfig config =
      small_mamba(7, {nn::MixerKind::kMamba1, nn::MixerKind::kMamba2, nn::MixerKind::kMamba1}, 16);
  config.layer_options = {{.first = 2, .mamba = nn::MambaOptions{.d_state = 9, .dt_rank = 2}}};
  const auto rows = [&](const std::string& layer, const Shape& shape) {
    const RowRange range = lm::train_only_bc(config).at(0).rows(
        "backbone.layers." + layer + ".mixer.x_proj.weight", shape)[0];
    return std::pair(range.begin, range.end);
  };
  EXPECT_EQ(rows("0", {1 + 2 * 5, 24}), std::pair(std::int64_t{1}, std::int64_t{11}));
  EXPECT_EQ(rows("2", {2 + 2 * 9, 24}), std::pair(std::int64_t{2}, std::int64_t{20}));
}

}  // namespace
}  // namespace tensorgrad::testing
