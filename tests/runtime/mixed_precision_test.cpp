// SPDX-License-Identifier: MIT
// Training in mixed precision: types, memory, a loss scale that adapts, and resuming from a
// checkpoint bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/half.h"
#include "runtime/precision_models.h"
#include "runtime/shared.h"
#include "support/models.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

// ---- types -----------------------------------------------------------------------------------

struct Layers {
  nn::Linear fc{8, 8};
  nn::LayerNorm norm{8};
  nn::Conv2d conv{2, 3, 3};
  Parameter table{{5, 8}, init::normal()};
  TG_MODULE(fc, norm, conv, table)
};

TEST(MixedPrecision, computes_products_in_f16_and_the_rest_by_operands) {
  bool traced = false;
  const auto loss = [&](const Layers& net, const Inputs& in) {
    traced = true;
    const Tensor x = in["x"];
    const Tensor h = net.fc(x);
    EXPECT_EQ(x.dtype(), f32);
    EXPECT_EQ(h.dtype(), f16);
    EXPECT_EQ(net.norm(x).dtype(), f32);
    EXPECT_EQ(net.norm(h).dtype(), f16);
    EXPECT_EQ(relu(h).dtype(), f16);
    EXPECT_EQ((x + h).dtype(), f32);
    EXPECT_EQ(matmul(x, transpose(x)).dtype(), f16);
    EXPECT_EQ(einsum("ij,kj->ik", {x, x}).dtype(), f16);
    EXPECT_EQ(scaled_dot_product_attention(x, x, x).dtype(), f16);
    EXPECT_EQ(net.conv(reshape(x, {1, 2, 4, 4})).dtype(), f16);
    EXPECT_EQ(embedding(in["i"], net.table).dtype(), f32);
    EXPECT_EQ(concat({x, h}, 0).dtype(), f32);
    EXPECT_EQ(stack({h, h}, 0).dtype(), f16);
    EXPECT_EQ(mse(h, in["y"]).dtype(), f32);
    EXPECT_EQ(softmax(h).dtype(), f16);
    {
      const Autocast full(false);
      EXPECT_EQ(net.fc(x).dtype(), f32);
      EXPECT_EQ(matmul(x, transpose(x)).dtype(), f32);
      {
        const Autocast again(true);
        EXPECT_EQ(net.fc(x).dtype(), f16);
      }
      EXPECT_EQ(net.fc(x).dtype(), f32);
    }
    const Tensor count = state("kept", {4, 8});
    set_state("kept", h);  // converted to the f32 of the state
    const Tensor own = custom_gradient(
        {h}, [](const std::vector<Tensor>& given) { return given[0] * 2.0; },
        [](const std::vector<Tensor>&, Tensor, Tensor dy) {
          return std::vector<Tensor>{dy * 2.0};
        });
    return mean(h) + mean(own) + mean(count);  // f16, converted to an f32 loss
  };
  const CompileOptions options = {.inputs = {{"x", {4, 8}}, {"y", {4, 8}}, {"i", {3}, i32}},
                                  .optimizer = optim::SGD{.lr = 0.1},
                                  .mixed_precision = true,
                                  .device = device_of("cpu")};
  auto trainer = compile(Layers{}, loss, options);
  EXPECT_TRUE(traced);
  const std::vector<float> x = numbers(32, 1), y = numbers(32, 2);
  const std::vector<std::int32_t> i = {0, 4, 2};
  const float first = trainer.step({{"x", x}, {"y", y}, {"i", i}}).loss;
  EXPECT_LT(trainer.step({{"x", x}, {"y", y}, {"i", i}}).loss, first);
}

struct ScaledNet {
  nn::Linear first{6, 16}, second{16, 3};
  TG_MODULE(first, second)
};
Tensor squared_error(const ScaledNet& net, const Inputs& in) {
  return mse(net.second(tanh(net.first(in["x"]))), in["y"]);
}
struct Batch {
  std::vector<float> x = numbers(8LL * 6, 1), y = numbers(8LL * 3, 2);
  Feed feed = {{"x", x}, {"y", y}};
};
CompileOptions net_options(const std::string& kind, const LossScale& scale) {
  return {.inputs = {{"x", {8, 6}}, {"y", {8, 3}}},
          .optimizer = optim::AdamW{.lr = 1e-2},
          .mixed_precision = true,
          .loss_scale = scale,
          .seed = 4,
          .device = device_of(kind)};
}

bool is_half(float value) { return from_half(to_half(value)) == value; }

// Activations are stored in two bytes. Parameters and their gradients are f32.
TEST(MixedPrecision, keeps_parameters_and_their_gradients_in_f32) {
  const Batch batch;
  auto trainer = compile(
      ScaledNet{},
      [](const ScaledNet& net, const Inputs& in) {
        const Tensor hidden = capture("hidden", tanh(net.first(in["x"])));
        return mse(net.second(hidden), in["y"]);
      },
      net_options("cpu", {}));
  const StepResult result = trainer.step(batch.feed, {.captures = {"hidden"}});
  EXPECT_EQ(result.captures.at("hidden").dtype, f16);
  for (const auto& [name, tensor] : trainer.download_grads()) {
    const std::vector<float> grads = tensor.floats();
    EXPECT_FALSE(std::all_of(grads.begin(), grads.end(), is_half)) << name;
  }
  for (const auto& [name, tensor] : trainer.download_params()) {
    const std::vector<float> values = tensor.floats();
    EXPECT_FALSE(std::all_of(values.begin(), values.end(), is_half)) << name;
  }
}

// Gradients match those of f32 to three digits, whatever the loss scale.
void expect_plain_gradients(const char* kind) {
  const Batch batch;
  CompileOptions plain = net_options(kind, {});
  plain.mixed_precision = false;
  plain.loss_scale = std::nullopt;
  auto reference = compile(ScaledNet{}, squared_error, plain);
  reference.step(batch.feed);
  const auto want = reference.download_grads();
  for (const double scale : {1.0, 4096.0}) {
    auto trainer = compile(ScaledNet{}, squared_error, net_options(kind, {.init_scale = scale}));
    trainer.step(batch.feed);
    for (const auto& [name, tensor] : trainer.download_grads()) {
      const std::vector<float> got = tensor.floats(), exact = want.at(name).floats();
      double largest = 0;
      for (const float each : exact) largest = std::max(largest, std::abs(1.0 * each));
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], exact[i], 3e-3 * largest) << kind << " " << name << " " << scale;
    }
  }
}
TEST(MixedPrecision, downloaded_gradients_are_unscaled) { expect_plain_gradients("cpu"); }
TEST(MixedPrecision, downloaded_gradients_are_unscaled_on_webgpu) {
  expect_plain_gradients("webgpu");
}

// Gradients below the range of f16 vanish without a loss scale, and are found with one.
TEST(MixedPrecision, loss_scale_preserves_small_gradients) {
  const Batch batch;
  const auto small = [](const ScaledNet& net, const Inputs& in) {
    return squared_error(net, in) * 1e-9;
  };
  const auto norm_of = [&](double scale) {
    auto trainer = compile(ScaledNet{}, small, net_options("cpu", {.init_scale = scale}));
    trainer.step(batch.feed);
    double sum = 0;
    for (const float each : trainer.download_grads().at("first.weight").floats())
      sum += 1.0 * each * each;
    return std::sqrt(sum);
  };
  EXPECT_EQ(norm_of(1), 0);
  EXPECT_GT(norm_of(0x1p20), 1e-11);
}

// ---- loss scale ------------------------------------------------------------------------------

// The loss scale starts far too large and falls until the gradients fit. Then it grows at every
// third update until they do not.
void expect_falls_and_growth(const char* kind) {
  const Batch batch;
  auto trainer = compile(ScaledNet{}, squared_error,
                         net_options(kind, {.init_scale = 0x1p24, .growth_interval = 3}));
  double expected = 0x1p24;
  int in_a_row = 0, skipped = 0, grown = 0, fallen_after_growth = 0;
  EXPECT_EQ(trainer.loss_scale(), expected);
  for (int i = 0; i < 40; ++i) {
    const Bits before = everything(trainer);
    const float loss = trainer.step(batch.feed).loss;
    EXPECT_TRUE(std::isfinite(loss)) << kind << ", step " << i;
    const bool finite = std::isfinite(trainer.grad_norm());
    EXPECT_EQ(everything(trainer) == before, !finite) << kind << ", step " << i;
    in_a_row = finite ? in_a_row + 1 : 0;
    if (!finite) {
      expected /= 2;
      ++skipped;
      fallen_after_growth += grown > 0 ? 1 : 0;
    } else if (in_a_row == 3) {
      expected *= 2;
      in_a_row = 0;
      ++grown;
    }
    EXPECT_EQ(trainer.loss_scale(), expected) << kind << ", step " << i;
    EXPECT_EQ(trainer.skipped_updates(), skipped) << kind << ", step " << i;
  }
  EXPECT_GT(skipped, 2) << kind;
  EXPECT_GT(grown, 1) << kind;
  EXPECT_GT(fallen_after_growth, 0) << kind;
  EXPECT_EQ(trainer.steps(), 40);
}
TEST(LossScale, falls_where_gradients_overflow_and_grows_again) { expect_falls_and_growth("cpu"); }
TEST(LossScale, falls_where_gradients_overflow_and_grows_again_on_webgpu) {
  expect_falls_and_growth("webgpu");
}

// Skipped updates leave no trace, not even in Adam's bias corrections.
TEST(LossScale, skipped_updates_do_not_count_for_the_optimizer) {
  const Batch batch;
  auto late = compile(ScaledNet{}, squared_error, net_options("cpu", {.init_scale = 0x1p24}));
  while (true) {
    const double before = late.loss_scale();
    late.step(batch.feed);
    if (late.loss_scale() == before) break;  // the first update that is not skipped
    ASSERT_LT(late.steps(), 30);
  }
  EXPECT_GT(late.skipped_updates(), 2);
  auto direct =
      compile(ScaledNet{}, squared_error, net_options("cpu", {.init_scale = late.loss_scale()}));
  direct.step(batch.feed);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(late.step(batch.feed).loss, direct.step(batch.feed).loss);
  EXPECT_EQ(everything(late), everything(direct));
}

// The mean of several steps is one update. If one of the steps overflows, the update is skipped
// once.
void expect_one_look(const char* kind) {
  CompileOptions options = net_options(kind, {.init_scale = 64, .growth_interval = 1});
  options.accumulate = 3;
  auto trainer = compile(ScaledNet{}, squared_error, options);
  const Batch batch;
  const Bits before = everything(trainer);
  trainer.step({{"x", batch.x}, {"y", std::vector<float>(24, 1e30F)}});
  trainer.step(batch.feed);
  EXPECT_EQ(trainer.loss_scale(), 64) << kind;
  trainer.step(batch.feed);
  EXPECT_EQ(trainer.loss_scale(), 32) << kind;
  EXPECT_EQ(trainer.skipped_updates(), 1) << kind;
  const Bits after = everything(trainer);
  for (const auto& [name, bytes] : before) {
    if (name.starts_with("first") || name.starts_with("second")) {
      EXPECT_EQ(after.at(name), bytes) << name;
    }
  }
  for (int i = 0; i < 3; ++i) trainer.step(batch.feed);
  EXPECT_EQ(trainer.loss_scale(), 64) << kind;
  EXPECT_EQ(trainer.skipped_updates(), 1) << kind;
}
TEST(LossScale, treats_an_accumulated_update_as_a_whole) { expect_one_look("cpu"); }
TEST(LossScale, treats_an_accumulated_update_as_a_whole_on_webgpu) { expect_one_look("webgpu"); }

TEST(LossScale, works_in_f32_and_with_a_fixed_factor) {
  const Batch batch;
  CompileOptions plain = net_options("cpu", {});
  plain.mixed_precision = false;
  plain.loss_scale = std::nullopt;
  CompileOptions scaled = plain;
  scaled.loss_scale = LossScale{.init_scale = 8, .backoff_factor = 1, .growth_interval = 0};
  auto a = compile(ScaledNet{}, squared_error, plain),
       b = compile(ScaledNet{}, squared_error, scaled);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a.step(batch.feed).loss, b.step(batch.feed).loss);
  EXPECT_EQ(everything(a), everything(b));  // powers of two do not change any bit
  b.step({{"x", batch.x}, {"y", std::vector<float>(24, 1e30F)}});
  EXPECT_EQ(b.loss_scale(), 8);
  EXPECT_EQ(b.skipped_updates(), 1);
}

TEST(LossScale, is_reset_with_the_optimizer) {
  const Batch batch;
  auto trainer = compile(ScaledNet{}, squared_error, net_options("cpu", {.init_scale = 0x1p24}));
  for (int i = 0; i < 3; ++i) trainer.step(batch.feed);
  EXPECT_LT(trainer.loss_scale(), 0x1p24);
  const double fallen = trainer.loss_scale();
  trainer.reset({.params = true, .optimizer = false});
  EXPECT_EQ(trainer.loss_scale(), fallen);
  trainer.reset({.params = false, .optimizer = true});
  EXPECT_EQ(trainer.loss_scale(), 0x1p24);
  EXPECT_EQ(trainer.skipped_updates(), 0);
}

TEST(LossScale, is_separate_for_each_objective) {
  const Batch batch;
  const auto spec = [](const char* name, const char* params, double scale) {
    return ObjectiveSpec<ScaledNet>{.name = name,
                                    .loss = squared_error,
                                    .params = params,
                                    .options = {.inputs = {{"x", {8, 6}}, {"y", {8, 3}}},
                                                .optimizer = optim::SGD{.lr = 1e-2},
                                                .mixed_precision = true,
                                                .loss_scale = LossScale{.init_scale = scale}}};
  };
  auto trainer = compile(ScaledNet{}, {spec("a", "first.*", 0x1p24), spec("b", "second.*", 16)},
                         {.device = device_of("cpu")});
  trainer["a"].step(batch.feed);
  trainer["b"].step(batch.feed);
  EXPECT_EQ(trainer["a"].loss_scale(), 0x1p23);
  EXPECT_EQ(trainer["b"].loss_scale(), 16);
  EXPECT_EQ(trainer["b"].skipped_updates(), 0);
}

// ---- resuming, inference, memory -------------------------------------------------------------

// Saves while the loss scale is still falling and in the middle of an accumulation.
void expect_resumed_in_halves(const char* kind) {
  const std::string path = temporary("mixed.safetensors");
  CompileOptions options = options_of(gpt_data(), kind, true);
  options.loss_scale = LossScale{.init_scale = 0x1p26, .growth_interval = 2};
  options.accumulate = 2;
  options.ema_decay = 0.9;
  auto whole = trainer_of<Gpt>(gpt_data(), options);
  whole.run(7);
  EXPECT_GT(whole.skipped_updates(), 0);
  whole.save(path);
  const std::vector<float> rest = whole.run(12);
  auto resumed = trainer_of<Gpt>(gpt_data(), options);
  resumed.run(3);
  resumed.load(path);
  EXPECT_EQ(resumed.run(12), rest) << kind;
  EXPECT_EQ(everything(resumed), everything(whole)) << kind;
  EXPECT_EQ(resumed.loss_scale(), whole.loss_scale()) << kind;
  EXPECT_EQ(resumed.skipped_updates(), whole.skipped_updates()) << kind;
  std::filesystem::remove(path);
}
TEST(MixedPrecision, resumes_from_a_checkpoint_bit_for_bit) { expect_resumed_in_halves("cpu"); }
TEST(MixedPrecision, resumes_from_a_checkpoint_bit_for_bit_on_webgpu) {
  expect_resumed_in_halves("webgpu");
}

TEST(MixedPrecision, attached_function_matches_the_step) {
  const Batch batch;
  const auto hidden = [](const ScaledNet& net, const Inputs& in) {
    return tanh(net.first(in["x"]));
  };
  auto trainer = compile(
      ScaledNet{},
      [&](const ScaledNet& net, const Inputs& in) {
        return mse(net.second(capture("hidden", hidden(net, in))), in["y"]);
      },
      net_options("cpu", {}));
  auto mixed = trainer.attach(hidden, {.inputs = {{"x", {8, 6}}}, .mixed_precision = true});
  auto full = trainer.attach(hidden, {.inputs = {{"x", {8, 6}}}});
  const HostTensor as_in_use = mixed({{"x", batch.x}}), exact = full({{"x", batch.x}});
  const StepResult step = trainer.step(batch.feed, {.captures = {"hidden"}});
  EXPECT_EQ(as_in_use.dtype, f16);
  EXPECT_EQ(exact.dtype, f32);
  EXPECT_EQ(as_in_use.bytes, step.captures.at("hidden").bytes);
}

// A decoder whose activations need more memory than its parameters.
struct Deep {
  std::vector<nn::Linear> up, down;
  nn::Linear out{64, 8};
  TG_MODULE(up, down, out)
  Deep() {
    for (int i = 0; i < 4; ++i) {
      up.emplace_back(64, 256);
      down.emplace_back(256, 64);
    }
  }
  Tensor operator()(Tensor x) const {
    for (std::size_t i = 0; i < up.size(); ++i) x = x + down[i](gelu(up[i](layer_norm(x))));
    return out(x);
  }
};

TEST(MixedPrecision, takes_less_memory) {
  const auto peak = [](bool mixed) {
    const CompileOptions options = {.inputs = {{"x", {4096, 64}}, {"t", {4096}, i32}},
                                    .optimizer = optim::AdamW{},
                                    .mixed_precision = mixed};
    const auto loss = [](const Deep& net, const Inputs& in) {
      return cross_entropy(net(in["x"]), in["t"]);
    };
    return static_cast<double>(trace(Deep{}, loss, options).report().peak_bytes);
  };
  EXPECT_LT(peak(true), 0.75 * peak(false));
}

}  // namespace
}  // namespace tensorgrad::testing
