// SPDX-License-Identifier: MIT
// DeviceOptions::tuning_cache: training and functions write the file, and compute the same bits
// when they read it.
#include <gtest/gtest.h>

#include <utility>

#include "runtime/shared.h"
#include "support/decimal_comma.h"
#include "support/temp_dir.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct TunedNet {
  nn::Linear first{24, 40}, second{40, 24};
  TG_MODULE(first, second)
  Tensor operator()(const Tensor& x) const { return second(tanh(first(x))); }
};

// Returns parameters, states and losses after some steps of `net`, which reproduces its input.
template <class Net>
std::pair<Bits, std::vector<float>> tuned_steps(Net net, const DeviceOptions& device) {
  auto trainer =
      compile(std::move(net),
              [](const Net& trained, const Inputs& in) { return mse(trained(in["x"]), in["x"]); },
              {.inputs = {{"x", {50, 24}}},  // no whole row blocks, so not fused
               .optimizer = optim::SGD{.lr = 0.1},
               .seed = 3,
               .device = device});
  std::vector<float> x(50 * 24), losses;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) / 6 - 1;
  for (int step = 0; step < 4; ++step) losses.push_back(trainer.step({{"x", x}}).loss);
  return {everything(trainer), losses};
}

TEST(TuningCache, of_a_trainer_on_webgpu_fixes_the_bits_and_keeps_the_losses) {
  const test::TempDir dir;
  const std::string path = dir / "tuning.txt";
  DeviceOptions device = {.kind = "webgpu", .allow_software = true, .tuning_cache = path};
  const auto first = tuned_steps(TunedNet{}, device);
  const std::string text = read_text_file(path);
  EXPECT_EQ(text.find("tensorgrad tuning 1\n"), 0U);
  EXPECT_NE(text.find("\t1x"), std::string::npos) << text;
  const auto second = tuned_steps(TunedNet{}, device);
  EXPECT_EQ(second, first);
  EXPECT_EQ(read_text_file(path), text);
  const auto without = tuned_steps(TunedNet{}, {.kind = "webgpu", .allow_software = true});
  for (std::size_t i = 0; i < first.second.size(); ++i)
    EXPECT_NEAR(first.second[i], without.second[i], 1e-5);
}

// To measure a product takes seconds on a software GPU, so this trains one layer, and only the
// first call measures.
TEST(TuningCache, is_the_same_with_a_decimal_comma_on_webgpu) {
  const test::TempDir dir;
  const std::string path = dir / "tuning.txt";
  const auto steps = [&] {
    return tuned_steps(nn::Linear(24, 24),
                       {.kind = "webgpu", .allow_software = true, .tuning_cache = path});
  };
  std::string text;
  std::pair<Bits, std::vector<float>> first;
  {
    const test::DecimalComma comma;
    first = steps();
    text = read_text_file(path);
    EXPECT_NE(text.find("\t1x"), std::string::npos) << text;
    EXPECT_EQ(steps(), first);
    EXPECT_EQ(read_text_file(path), text);
  }
  EXPECT_EQ(steps(), first);
  EXPECT_EQ(read_text_file(path), text);
}

TEST(TuningCache, is_ignored_on_the_cpu) {
  const test::TempDir dir;
  DeviceOptions device = {.kind = "cpu", .tuning_cache = dir / "tuning.txt"};
  EXPECT_EQ(tuned_steps(TunedNet{}, device), tuned_steps(TunedNet{}, {.kind = "cpu"}));
  EXPECT_TRUE(dir.files().empty());
}

}  // namespace
}  // namespace tensorgrad::testing
