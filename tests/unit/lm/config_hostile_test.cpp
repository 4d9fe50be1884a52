// SPDX-License-Identifier: MIT
// Malformed and inconsistent configurations, of tensorgrad and of published checkpoints. They are
// rejected with a message, or read as a configuration that can be written and read again.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lm/pretrained_config.h"
#include "support/source_path.h"
#include "tensorgrad/tensorgrad.h"
#include "unit/io/io_test_util.h"
#include "unit/lm/hostile_json.h"

namespace tensorgrad::testing {
namespace {

namespace fs = std::filesystem;
using test::TestRandom;

std::vector<std::string> foreign_configurations() {
  std::vector<std::string> all;
  for (const auto& folder : fs::directory_iterator(test::source_path("tests/golden/pretrained"))) {
    std::ifstream file(folder.path() / "config.json");
    if (file)
      all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return all;
}

std::vector<std::string> own_configurations() {
  std::vector<std::string> all;
  for (const char* schedule : {"mamba1", "mamba2", "mamba3", "jamba", "zamba"}) {
    nn::LanguageModelConfig config{.vocab_size = 9, .d_model = 12, .n_layer = 8};
    config.layers = nn::mixer_schedule(schedule, config.n_layer);
    all.push_back(lm::to_json(config));
  }
  all.push_back(lm::to_json(nn::gpt2_config(9, 12, 2, 3, 16)));
  nn::LanguageModelConfig hybrid{.vocab_size = 9, .d_model = 12, .n_layer = 6};
  hybrid.layers = nn::mixer_schedule("mamba1 moe attention mlp", hybrid.n_layer);
  hybrid.layer_options = {{.first = 0, .period = 4, .mamba = nn::MambaOptions{.d_state = 3}},
                          {.first = 1, .moe = nn::MixtureOfExperts::Options{.experts = 3}},
                          {.first = 2, .attention = nn::AttentionLayer{.heads = 3}},
                          {.first = 3, .mlp = nn::MlpLayer{.width = 5, .bias = true}}};
  all.push_back(lm::to_json(hybrid));
  hybrid.layers = nn::mixer_schedule("mamba2_shared mamba2", hybrid.n_layer);
  hybrid.layer_options = {{.first = 2, .mamba2 = nn::Mamba2Options{.d_state = 3}}};
  hybrid.shared = {.blocks = 2, .mlp_bias = true, .adapter_rank = 3, .attention_adapters = true};
  all.push_back(lm::to_json(hybrid));
  return all;
}

template <class Read>
void expect_refused_or_whole(const std::vector<std::string>& seeds, const Read& read) {
  ASSERT_FALSE(seeds.empty());
  TestRandom random(77);
  int taken = 0, refused = 0;
  for (int round = 0; round < 6000; ++round) {
    const std::string& seed = seeds[random.below(seeds.size())];
    const std::string bad =
        round % 2 == 0 ? test::with_another_value(seed, random) : test::mutated(seed, random);
    try {
      const std::string written = lm::to_json(read(bad));
      EXPECT_EQ(lm::to_json(lm::config_from_json(written)), written) << bad;
      ++taken;
    } catch (const UserError& error) {
      EXPECT_EQ(error.message().rfind("c.json: ", 0), 0U) << error.message() << "\n" << bad;
      ++refused;
    }
  }
  EXPECT_GT(taken, 100);
  EXPECT_GT(refused, 1000);
}

TEST(LmConfigHostile, own_files_are_rejected_or_read) {
  expect_refused_or_whole(own_configurations(), [](const std::string& text) {
    return lm::config_from_json(text, "c.json");
  });
}

TEST(LmConfigHostile, published_files_are_rejected_or_read) {
  expect_refused_or_whole(foreign_configurations(), [](const std::string& text) {
    return lm::pretrained_config(lm::python_json(text, "c.json"), "c.json");
  });
}

TEST(LmConfigHostile, numbers_beyond_double_are_rejected) {
  try {
    (void)lm::python_json("{\"time_step_max\": 1e999}", "c.json");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_EQ(error.message(), "c.json: has a number that is too large");
  }
}

TEST(LmConfigHostile, deep_nesting_is_rejected_before_recursion) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  try {
    (void)lm::python_json("{\"hidden_act\":" + deep + "}", "c.json");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_EQ(error.message(), "c.json: is nested too deeply");
  }
}

}  // namespace
}  // namespace tensorgrad::testing
