// SPDX-License-Identifier: MIT
// Training in mixed precision: the curve of f32, less memory, a factor on the loss that falls and
// grows by itself, and goes on from a checkpoint bit for bit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "base/half.h"
#include "support/models.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

constexpr const char* kKinds[] = {"cpu", "webgpu"};

DeviceOptions device_of(const std::string& kind) {
  return {.kind = kind, .threads = 2, .allow_software = true};
}

std::vector<float> noise(std::int64_t count, unsigned seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    values.push_back(static_cast<float>(seed >> 8) * 0x1p-23F - 1);
  }
  return values;
}

std::vector<std::int32_t> symbols(std::int64_t count, unsigned seed, std::int32_t most) {
  std::vector<std::int32_t> values;
  for (const float each : noise(count, seed))
    values.push_back(static_cast<std::int32_t>((each + 1) * 0.5F * static_cast<float>(most)));
  return values;
}

// ---- models ----------------------------------------------------------------------------------

// A decoder with attention that stores no weights, and a tied head.
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

Data gpt_data() {
  const Shape rows = {32, Gpt::kLength};
  return {{{"x", rows, i32}, {"t", rows, i32}}, Gpt::kBatch, [rows](TrainerBase& trainer) {
            // The next symbol is a function of this one, so there is something to learn.
            std::vector<std::int32_t> text = symbols(numel(rows), 3, Gpt::kVocab), next;
            next.reserve(text.size());
            for (const std::int32_t each : text) next.push_back((each * 5 + 3) % Gpt::kVocab);
            trainer.upload_data("x", text);
            trainer.upload_data("t", next);
          }};
}

Data cnn_data() {
  return {{{"x", {64, 1, 28, 28}}, {"t", {64}, i32}}, 16, [](TrainerBase& trainer) {
            std::vector<float> pixels = noise(64LL * 28 * 28, 5);
            const std::vector<std::int32_t> labels = symbols(64, 9, 10);
            for (std::size_t i = 0; i < labels.size(); ++i) {  // a bar for each class
              for (int c = 0; c < 28; ++c)
                pixels[(i * 28 + 2 * static_cast<std::size_t>(labels[i])) * 28 +
                       static_cast<std::size_t>(c)] += 3;
            }
            trainer.upload_data("x", pixels);
            trainer.upload_data("t", labels);
          }};
}

CompileOptions options_of(const Data& data, const std::string& kind, bool mixed) {
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

template <class Model>
std::vector<float> curve(const Data& data, const CompileOptions& options, int steps,
                         std::int64_t& skipped) {
  auto trainer = trainer_of<Model>(data, options);
  std::vector<float> losses = trainer.run(steps);
  if (options.mixed_precision) skipped = trainer.skipped_updates();
  return losses;
}

// The two curves differ by less than a thousandth of what they begin with.
template <class Model>
void expect_curve_of_f32(const Data& data, double rate, int steps) {
  for (const char* kind : kKinds) {
    std::int64_t skipped = 0;
    CompileOptions plain = options_of(data, kind, false), mixed = options_of(data, kind, true);
    plain.optimizer = mixed.optimizer = optim::AdamW{.lr = rate};
    mixed.loss_scale = LossScale{.init_scale = 1024};
    const std::vector<float> want = curve<Model>(data, plain, steps, skipped);
    const std::vector<float> got = curve<Model>(data, mixed, steps, skipped);
    EXPECT_EQ(skipped, 0) << kind;
    EXPECT_LT(want.back(), 0.8 * want.front()) << kind;
    EXPECT_NE(got, want) << kind << ": nothing was rounded";
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-3 * want.front()) << kind << ", step " << i;
  }
}

TEST(MixedPrecision, has_the_loss_curve_of_f32_for_a_decoder) {
  expect_curve_of_f32<Gpt>(gpt_data(), 3e-3, 40);
}

TEST(MixedPrecision, has_the_loss_curve_of_f32_for_a_cnn) {
  expect_curve_of_f32<Cnn>(cnn_data(), 5e-4, 20);
}

TEST(MixedPrecision, is_the_same_on_cpu_and_webgpu) {
  std::int64_t skipped = 0;
  const std::vector<float> cpu =
      curve<Gpt>(gpt_data(), options_of(gpt_data(), "cpu", true), 10, skipped);
  const std::vector<float> gpu =
      curve<Gpt>(gpt_data(), options_of(gpt_data(), "webgpu", true), 10, skipped);
  for (std::size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(cpu[i], gpu[i], 3e-4 * cpu[i]);
}

// ---- types -----------------------------------------------------------------------------------

struct Layers {
  nn::Linear fc{8, 8};
  nn::LayerNorm norm{8};
  nn::Conv2d conv{2, 3, 3};
  Parameter table{{5, 8}, init::normal()};
  TG_MODULE(fc, norm, conv, table)
};

TEST(MixedPrecision, gives_products_f16_and_leaves_the_rest_to_its_operands) {
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
    set_state("kept", h);  // an f32 state takes it
    const Tensor own = custom_gradient(
        {h}, [](const std::vector<Tensor>& given) { return given[0] * 2.0; },
        [](const std::vector<Tensor>&, Tensor, Tensor dy) {
          return std::vector<Tensor>{dy * 2.0};
        });
    return mean(h) + mean(own) + mean(count);  // of f16: the loss is made f32
  };
  const CompileOptions options = {.inputs = {{"x", {4, 8}}, {"y", {4, 8}}, {"i", {3}, i32}},
                                  .optimizer = optim::SGD{.lr = 0.1},
                                  .mixed_precision = true,
                                  .device = device_of("cpu")};
  auto trainer = compile(Layers{}, loss, options);
  EXPECT_TRUE(traced);
  const std::vector<float> x = noise(32, 1), y = noise(32, 2);
  const std::vector<std::int32_t> i = {0, 4, 2};
  const float first = trainer.step({{"x", x}, {"y", y}, {"i", i}}).loss;
  EXPECT_LT(trainer.step({{"x", x}, {"y", y}, {"i", i}}).loss, first);
}

struct Net {
  nn::Linear first{6, 16}, second{16, 3};
  TG_MODULE(first, second)
};
Tensor squared_error(const Net& net, const Inputs& in) {
  return mse(net.second(tanh(net.first(in["x"]))), in["y"]);
}
struct Batch {
  std::vector<float> x = noise(8LL * 6, 1), y = noise(8LL * 3, 2);
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

// Activations lie in two bytes; parameters and their gradients keep all digits of f32.
TEST(MixedPrecision, keeps_parameters_and_their_gradients_in_f32) {
  const Batch batch;
  auto trainer = compile(
      Net{},
      [](const Net& net, const Inputs& in) {
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

// They are those of f32 to three digits, whatever the factor.
TEST(MixedPrecision, gives_gradients_without_the_factor) {
  const Batch batch;
  for (const char* kind : kKinds) {
    CompileOptions plain = net_options(kind, {});
    plain.mixed_precision = false;
    plain.loss_scale = std::nullopt;
    auto reference = compile(Net{}, squared_error, plain);
    reference.step(batch.feed);
    const auto want = reference.download_grads();
    for (const double scale : {1.0, 4096.0}) {
      auto trainer = compile(Net{}, squared_error, net_options(kind, {.init_scale = scale}));
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
}

// Gradients below what f16 has are lost without a factor, and found with one.
TEST(MixedPrecision, finds_small_gradients_by_the_factor) {
  const Batch batch;
  const auto small = [](const Net& net, const Inputs& in) { return squared_error(net, in) * 1e-9; };
  const auto norm_of = [&](double scale) {
    auto trainer = compile(Net{}, small, net_options("cpu", {.init_scale = scale}));
    trainer.step(batch.feed);
    double sum = 0;
    for (const float each : trainer.download_grads().at("first.weight").floats())
      sum += 1.0 * each * each;
    return std::sqrt(sum);
  };
  EXPECT_EQ(norm_of(1), 0);
  EXPECT_GT(norm_of(0x1p20), 1e-11);
}

// ---- the factor ------------------------------------------------------------------------------

using Bits = std::map<std::string, std::vector<std::byte>>;
Bits bits_of(const TrainerBase& trainer) {
  Bits bits;
  for (const auto& [name, tensor] : trainer.download_params()) bits[name] = tensor.bytes;
  for (const auto& [name, tensor] : trainer.download_optimizer()) bits[name] = tensor.bytes;
  return bits;
}

// From far too large it falls until gradients fit, and from then on grows every third update until
// they do not.
TEST(LossScale, falls_where_gradients_overflow_and_grows_again) {
  const Batch batch;
  for (const char* kind : kKinds) {
    auto trainer = compile(Net{}, squared_error,
                           net_options(kind, {.init_scale = 0x1p24, .growth_interval = 3}));
    double expected = 0x1p24;
    int in_a_row = 0, skipped = 0, grown = 0, fallen_after_growth = 0;
    EXPECT_EQ(trainer.loss_scale(), expected);
    for (int i = 0; i < 40; ++i) {
      const Bits before = bits_of(trainer);
      const float loss = trainer.step(batch.feed).loss;
      EXPECT_TRUE(std::isfinite(loss)) << kind << ", step " << i;
      const bool finite = std::isfinite(trainer.grad_norm());
      EXPECT_EQ(bits_of(trainer) == before, !finite) << kind << ", step " << i;
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
}

// Updates that were skipped leave no trace, not in Adam's corrections either.
TEST(LossScale, skipped_updates_do_not_count_for_the_optimizer) {
  const Batch batch;
  auto late = compile(Net{}, squared_error, net_options("cpu", {.init_scale = 0x1p24}));
  while (true) {
    const double before = late.loss_scale();
    late.step(batch.feed);
    if (late.loss_scale() == before) break;  // the first that took place
    ASSERT_LT(late.steps(), 30);
  }
  EXPECT_GT(late.skipped_updates(), 2);
  auto direct =
      compile(Net{}, squared_error, net_options("cpu", {.init_scale = late.loss_scale()}));
  direct.step(batch.feed);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(late.step(batch.feed).loss, direct.step(batch.feed).loss);
  EXPECT_EQ(bits_of(late), bits_of(direct));
}

// The mean of several steps is one update: one of them that overflows spoils it, once.
TEST(LossScale, looks_at_an_accumulated_update_as_a_whole) {
  for (const char* kind : kKinds) {
    CompileOptions options = net_options(kind, {.init_scale = 64, .growth_interval = 1});
    options.accumulate = 3;
    auto trainer = compile(Net{}, squared_error, options);
    const Batch batch;
    const Bits before = bits_of(trainer);
    trainer.step({{"x", batch.x}, {"y", std::vector<float>(24, 1e30F)}});
    trainer.step(batch.feed);
    EXPECT_EQ(trainer.loss_scale(), 64) << kind;
    trainer.step(batch.feed);
    EXPECT_EQ(trainer.loss_scale(), 32) << kind;
    EXPECT_EQ(trainer.skipped_updates(), 1) << kind;
    const Bits after = bits_of(trainer);
    for (const auto& [name, bytes] : before) {
      if (name.starts_with("first") || name.starts_with("second")) {
        EXPECT_EQ(after.at(name), bytes) << name;
      }
    }
    for (int i = 0; i < 3; ++i) trainer.step(batch.feed);
    EXPECT_EQ(trainer.loss_scale(), 64) << kind;
    EXPECT_EQ(trainer.skipped_updates(), 1) << kind;
  }
}

TEST(LossScale, goes_without_mixed_precision_too_and_may_stay_fixed) {
  const Batch batch;
  CompileOptions plain = net_options("cpu", {});
  plain.mixed_precision = false;
  plain.loss_scale = std::nullopt;
  CompileOptions scaled = plain;
  scaled.loss_scale = LossScale{.init_scale = 8, .backoff_factor = 1, .growth_interval = 0};
  auto a = compile(Net{}, squared_error, plain), b = compile(Net{}, squared_error, scaled);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a.step(batch.feed).loss, b.step(batch.feed).loss);
  EXPECT_EQ(bits_of(a), bits_of(b));  // powers of two change no bit
  b.step({{"x", batch.x}, {"y", std::vector<float>(24, 1e30F)}});
  EXPECT_EQ(b.loss_scale(), 8);
  EXPECT_EQ(b.skipped_updates(), 1);
}

TEST(LossScale, goes_back_to_its_beginning_with_the_optimizer) {
  const Batch batch;
  auto trainer = compile(Net{}, squared_error, net_options("cpu", {.init_scale = 0x1p24}));
  for (int i = 0; i < 3; ++i) trainer.step(batch.feed);
  EXPECT_LT(trainer.loss_scale(), 0x1p24);
  const double fallen = trainer.loss_scale();
  trainer.reset({.params = true, .optimizer = false});
  EXPECT_EQ(trainer.loss_scale(), fallen);
  trainer.reset({.params = false, .optimizer = true});
  EXPECT_EQ(trainer.loss_scale(), 0x1p24);
  EXPECT_EQ(trainer.skipped_updates(), 0);
}

TEST(LossScale, is_each_objectives_own) {
  const Batch batch;
  const auto spec = [](const char* name, const char* params, double scale) {
    return ObjectiveSpec<Net>{.name = name,
                              .loss = squared_error,
                              .params = params,
                              .options = {.inputs = {{"x", {8, 6}}, {"y", {8, 3}}},
                                          .optimizer = optim::SGD{.lr = 1e-2},
                                          .mixed_precision = true,
                                          .loss_scale = LossScale{.init_scale = scale}}};
  };
  auto trainer = compile(Net{}, {spec("a", "first.*", 0x1p24), spec("b", "second.*", 16)},
                         {.device = device_of("cpu")});
  trainer["a"].step(batch.feed);
  trainer["b"].step(batch.feed);
  EXPECT_EQ(trainer["a"].loss_scale(), 0x1p23);
  EXPECT_EQ(trainer["b"].loss_scale(), 16);
  EXPECT_EQ(trainer["b"].skipped_updates(), 0);
}

// ---- going on, using, memory -----------------------------------------------------------------

// Saved while the factor still falls and in the middle of an accumulation.
TEST(MixedPrecision, goes_on_from_a_checkpoint_bit_for_bit) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("tensorgrad_mixed_" + std::to_string(::getpid()) + ".safetensors");
  for (const char* kind : kKinds) {
    CompileOptions options = options_of(gpt_data(), kind, true);
    options.loss_scale = LossScale{.init_scale = 0x1p26, .growth_interval = 2};
    options.accumulate = 2;
    options.ema_decay = 0.9;
    auto whole = trainer_of<Gpt>(gpt_data(), options);
    whole.run(7);
    EXPECT_GT(whole.skipped_updates(), 0);
    whole.save(path);
    const std::vector<float> rest = whole.run(30);
    auto resumed = trainer_of<Gpt>(gpt_data(), options);
    resumed.run(3);
    resumed.load(path);
    EXPECT_EQ(resumed.run(30), rest) << kind;
    EXPECT_EQ(bits_of(resumed), bits_of(whole)) << kind;
    EXPECT_EQ(resumed.loss_scale(), whole.loss_scale()) << kind;
    EXPECT_EQ(resumed.skipped_updates(), whole.skipped_updates()) << kind;
  }
  std::filesystem::remove(path);
}

TEST(MixedPrecision, of_an_attached_function_is_that_of_the_step) {
  const Batch batch;
  const auto hidden = [](const Net& net, const Inputs& in) { return tanh(net.first(in["x"])); };
  auto trainer = compile(
      Net{},
      [&](const Net& net, const Inputs& in) {
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

// Of a decoder whose activations outweigh its parameters.
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
