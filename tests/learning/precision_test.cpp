// SPDX-License-Identifier: MIT
// Training in mixed precision has the same loss curve as training in f32.
#include <gtest/gtest.h>

#include "runtime/precision_models.h"
#include "support/sanitized.h"

namespace tensorgrad::testing {
namespace {

template <class Model>
std::vector<float> curve(const Data& data, const CompileOptions& options, int steps,
                         std::int64_t& skipped) {
  auto trainer = trainer_of<Model>(data, options);
  std::vector<float> losses = trainer.run(steps);
  if (options.mixed_precision) skipped = trainer.skipped_updates();
  return losses;
}

// The two curves differ by less than a thousandth of the initial loss.
template <class Model>
void expect_curve_of_f32(const Data& data, double rate, int steps, const char* kind) {
  std::int64_t skipped = 0;
  CompileOptions plain = options_of(data, kind, false), mixed = options_of(data, kind, true);
  plain.optimizer = mixed.optimizer = optim::AdamW{.lr = rate};
  mixed.loss_scale = LossScale{.init_scale = 1024};
  const std::vector<float> want = curve<Model>(data, plain, steps, skipped);
  const std::vector<float> got = curve<Model>(data, mixed, steps, skipped);
  EXPECT_EQ(skipped, 0) << kind;
  if (!kSanitized) {
    EXPECT_LT(want.back(), 0.8 * want.front()) << kind;
  }
  EXPECT_NE(got, want) << kind << ": nothing was rounded";
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-3 * want.front()) << kind << ", step " << i;
}

void expect_curve_of_decoder(const char* kind) {
  expect_curve_of_f32<Gpt>(gpt_data(), 3e-3, kSanitized ? 4 : 40, kind);
}
TEST(MixedPrecision, has_the_loss_curve_of_f32_for_a_decoder) { expect_curve_of_decoder("cpu"); }
TEST(MixedPrecision, has_the_loss_curve_of_f32_for_a_decoder_on_webgpu) {
  expect_curve_of_decoder("webgpu");
}

void expect_curve_of_cnn(const char* kind) {
  expect_curve_of_f32<Cnn>(cnn_data(), 5e-4, kSanitized ? 2 : 20, kind);
}
TEST(MixedPrecision, has_the_loss_curve_of_f32_for_a_cnn) { expect_curve_of_cnn("cpu"); }
TEST(MixedPrecision, has_the_loss_curve_of_f32_for_a_cnn_on_webgpu) {
  expect_curve_of_cnn("webgpu");
}

TEST(MixedPrecision, is_the_same_on_cpu_and_webgpu) {
  constexpr int kSteps = kSanitized ? 3 : 10;
  std::int64_t skipped = 0;
  const std::vector<float> cpu =
      curve<Gpt>(gpt_data(), options_of(gpt_data(), "cpu", true), kSteps, skipped);
  const std::vector<float> gpu =
      curve<Gpt>(gpt_data(), options_of(gpt_data(), "webgpu", true), kSteps, skipped);
  for (std::size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(cpu[i], gpu[i], 3e-4 * cpu[i]);
}

}  // namespace
}  // namespace tensorgrad::testing
