// SPDX-License-Identifier: MIT
// Parameters that are divided among the ranks and gathered bucket by bucket: the bits of training
// with whole parameters, the same checkpoints, less memory, attached functions, and errors.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "distributed/ranks.h"
#include "distributed/results.h"
#include "support/message_of.h"

namespace tensorgrad::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Ranks = std::shared_ptr<Communicator>;
using Change = std::function<void(CompileOptions&)>;

// Bytes of buckets: each parameter by itself; several buckets; one bucket.
constexpr std::array<std::int64_t, 3> kBucketBytes = {1, 3000, kDefaultBucketBytes};

CompileOptions parameter_options(const Ranks& ranks, bool shard) {
  CompileOptions options = classifier_options(ranks);
  options.clip_grad_norm = 0;
  options.shard_parameters = shard;
  return options;
}

// Trains with whole and with sharded parameters, and compares all bits.
template <class Train>
void expect_bits_of_whole(const Train& train) {
  for (const int ranks : {2, 3}) {
    const std::vector<RankResult> whole =
        results_of(ranks, [&](const Ranks& member) { return train(member, false); });
    EXPECT_FALSE(whole[0].params.empty());
    for (const std::int64_t bytes : kBucketBytes) {
      SCOPED_TRACE(std::to_string(ranks) + " ranks, buckets of " + std::to_string(bytes));
      EXPECT_EQ(results_of(
                    ranks, [&](const Ranks& member) { return train(member, true); },
                    bucket_options(bytes)),
                whole);
    }
  }
}

void expect_bits_of_whole_with(const Change& change) {
  expect_bits_of_whole([&](const Ranks& ranks, bool shard) {
    CompileOptions options = parameter_options(ranks, shard);
    change(options);
    auto trainer = classifier(options);
    return result_of(trainer, 5);
  });
}

TEST(ShardedParameters, have_the_bits_of_whole_ones) {
  for (const Optimizer& optimizer :
       std::vector<Optimizer>{optim::SGD{.lr = 0.1}, optim::AdamW{.lr = 1e-2, .amsgrad = true},
                              optim::Lion{.lr = 1e-3}}) {
    SCOPED_TRACE(optimizer.name());
    expect_bits_of_whole_with([&](CompileOptions& options) { options.optimizer = optimizer; });
  }
}

TEST(ShardedParameters, have_the_bits_of_whole_ones_with_groups_frozen_parameters_and_averages) {
  expect_bits_of_whole([](const Ranks& ranks, bool shard) {
    CompileOptions options = parameter_options(ranks, shard);
    options.optimizer = optim::AdamW{.lr = 1e-2};
    options.groups = {
        {.params = "hidden.bias", .freeze = true},
        {.params = "hidden.weight",
         .lr_factor = 0.5,
         .rows = [](const std::string&,
                    const Shape&) { return std::vector<RowRange>{{1, 7}, {20, 30}}; }},
        {.params = "out.bias", .weight_decay = 0.5}};
    options.clip_grad_value = 0.01;
    options.ema_decay = 0.9;
    auto trainer = classifier(options);
    RankResult result = result_of(trainer, 5);
    append(trainer.download_ema(), result.params);
    return result;
  });
}

TEST(ShardedParameters, have_the_bits_of_whole_ones_in_mixed_precision) {
  expect_bits_of_whole_with([](CompileOptions& options) {
    options.mixed_precision = true;
    options.loss_scale = LossScale{.init_scale = 1024, .growth_interval = 2};
  });
}

// Compares with whole parameters, except for rounding. All ranks have the same bits.
template <class Train>
void expect_near(const Train& train) {
  const RankResult whole =
      results_of(2, [&](const Ranks& member) { return train(member, false); })[0];
  for (const std::int64_t bytes : kBucketBytes) {
    SCOPED_TRACE(bytes);
    const std::vector<RankResult> sharded = results_of(
        2, [&](const Ranks& member) { return train(member, true); }, bucket_options(bytes));
    EXPECT_EQ(sharded[0], sharded[1]);
    ASSERT_EQ(sharded[0].params.size(), whole.params.size());
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
      EXPECT_NEAR(sharded[0].losses[i], whole.losses[i], 1e-5) << i;
    for (std::size_t i = 0; i < whole.params.size(); ++i)
      ASSERT_NEAR(sharded[0].params[i], whole.params[i], 1e-5) << i;
  }
}

// A GPU groups launches differently. On the CPU, the norm is the sum of those of the shards, and
// gradients are added to those of previous steps after the sum over the ranks.
TEST(ShardedParameters, train_as_whole_ones_do_except_for_rounding) {
  for (const std::string kind : {"cpu", "webgpu"}) {
    for (const double clip : {0.0, 0.02}) {
      SCOPED_TRACE(kind + " " + std::to_string(clip));
      expect_near([&](const Ranks& ranks, bool shard) {
        CompileOptions options = parameter_options(ranks, shard);
        if (kind == "webgpu") options.device = {.kind = kind, .allow_software = true};
        options.optimizer = optim::SGD{.lr = 0.5, .momentum = 0.9};
        options.groups = {{.params = "out.*", .lr_factor = 0.5}};
        options.accumulate = 3;
        options.clip_grad_norm = clip;
        options.loss_scale = LossScale{.init_scale = 1024, .growth_interval = 2};
        auto trainer = classifier(options);
        RankResult result{trainer.run(9), all_params(trainer)};
        append(trainer.download_optimizer(), result.params);
        result.losses.push_back(static_cast<float>(trainer.grad_norm()));
        result.losses.push_back(static_cast<float>(trainer.loss_scale()));
        return result;
      });
    }
  }
}

TEST(ShardedParameters, skip_updates_on_all_ranks_and_may_be_fewer_than_ranks) {
  expect_bits_of_whole([](const Ranks& ranks, bool shard) {
    auto trainer = compile(
        Scale(), [](const Scale& net, const Inputs& in) { return mean(square(in["x"] * net.w)); },
        {.inputs = {{"x", {2}}},
         .optimizer = optim::Adam{.lr = 0.25},
         .skip_nonfinite = true,
         .device = {.kind = "cpu", .threads = 1},
         .distributed = ranks,
         .shard_parameters = shard});
    RankResult result;
    for (int i = 0; i < 4; ++i) {
      std::vector<float> x = {1, static_cast<float>(ranks->rank() + i)};
      if (i == 2 && ranks->rank() == 1) x[0] = std::numeric_limits<float>::infinity();
      const float loss = trainer.step({{"x", x}}).loss;
      result.losses.push_back(std::isfinite(loss) ? loss : -1);
      append(trainer.download_params(), result.params);
    }
    EXPECT_EQ(trainer.skipped_updates(), 1);
    EXPECT_EQ(result.params[1], result.params[2]);  // the third update is skipped
    EXPECT_NE(result.params[2], result.params[3]);
    return result;
  });
}

TEST(ShardedParameters, train_a_language_model) {
  constexpr std::int64_t kSymbols = 7;
  expect_bits_of_whole([](const Ranks& ranks, bool shard) {
    lm::TrainingOptions options = {.batch = 4,
                                   .length = 8,
                                   .steps = 10,
                                   .lr = 1e-2,
                                   .clip_grad_norm = 0,
                                   .seed = 4,
                                   .device = {.kind = "cpu", .threads = 1},
                                   .distributed = ranks,
                                   .shard_parameters = shard};
    lm::LanguageTrainer trainer(mixed_mamba(kSymbols, 16),
                                TokenSequence(random_tokens(400, kSymbols, 1)),
                                TokenSequence(random_tokens(90, kSymbols, 2)), options);
    RankResult result;
    for (int i = 0; i < 4; ++i) result.losses.push_back(static_cast<float>(trainer.step()));
    // Three rounds of 4 windows for each rank: in the last one, not all ranks have windows.
    const lm::TextScore own =
        trainer.validate({.num_shards = ranks->size(), .shard = ranks->rank()});
    std::vector<float> sums = {static_cast<float>(own.nats), static_cast<float>(own.tokens)};
    ranks->all_reduce_sum(sums);
    result.losses.insert(result.losses.end(), sums.begin(), sums.end());
    result.params = all_params(trainer.trainer());
    return result;
  });
}

// Six equal layers without biases.
struct Deep {
  static constexpr std::int64_t kWidth = 96, kLayers = 6, kBatch = 4;
  static constexpr std::int64_t kLayerBytes = kWidth * kWidth * 4;
  nn::Linear a{kWidth, kWidth, false}, b{kWidth, kWidth, false}, c{kWidth, kWidth, false},
      d{kWidth, kWidth, false}, e{kWidth, kWidth, false}, f{kWidth, kWidth, false};
  TG_MODULE(a, b, c, d, e, f)
};

Tensor deep_loss(const Deep& net, const Inputs& in) {
  Tensor x = in["x"];
  for (const nn::Linear* layer : {&net.a, &net.b, &net.c, &net.d, &net.e, &net.f})
    x = relu((*layer)(x));
  return mean(square(x));
}

CompileOptions deep_options(const Ranks& ranks, bool shard, const std::string& kind) {
  CompileOptions options = {.inputs = {{"x", {Deep::kBatch, Deep::kWidth}}},
                            .optimizer = optim::Adam{.lr = 1e-3},
                            .distributed = ranks,
                            .shard_parameters = shard};
  options.device = kind == "cpu" ? DeviceOptions{.kind = kind, .threads = 1}
                                 : DeviceOptions{.kind = kind, .allow_software = true};
  return options;
}

// Parameters, gradients, their sum over the ranks and both moments are whole, or one part in N.
// Windows for a layer's parameters and gradients come in addition.
TEST(ShardedParameters, take_a_part_of_the_memory) {
  constexpr std::int64_t kAll = Deep::kLayers * Deep::kLayerBytes;
  for (const std::string kind : {"cpu", "webgpu"}) {
    for (const int ranks : {2, 3, 4}) {
      SCOPED_TRACE(kind + " " + std::to_string(ranks));
      std::vector<std::int64_t> whole(static_cast<std::size_t>(ranks)), sharded(whole);
      EXPECT_THAT(
          on_ranks(
              ranks,
              [&](const Ranks& member) {
                const auto rank = static_cast<std::size_t>(member->rank());
                whole[rank] = compile(Deep(), deep_loss, deep_options(member, false, kind))
                                  .report()
                                  .peak_bytes;
                const auto trainer = compile(Deep(), deep_loss, deep_options(member, true, kind));
                EXPECT_THAT(trainer.explain(),
                            HasSubstr("\nexchange  6 buckets in 10 gathers of parameters, "));
                const CompileReport report = trainer.report();
                sharded[rank] = report.peak_bytes;
                EXPECT_EQ(report.parameter_bytes, kAll / ranks);
                EXPECT_EQ(report.unsharded_parameter_bytes, kAll);
                EXPECT_EQ(report.optimizer_bytes, 2 * kAll / ranks);
                EXPECT_EQ(report.unsharded_optimizer_bytes, 2 * kAll);
              },
              bucket_options(Deep::kLayerBytes)),
          Each(IsEmpty()));
      EXPECT_THAT(sharded, Each(whole[0] - 5 * kAll + 4 * kAll / ranks + 2 * Deep::kLayerBytes));
    }
  }
}

TEST(ShardedParameters, exceed_a_budget_with_the_names_of_the_tensors) {
  EXPECT_THAT(on_ranks(2,
                       [](const Ranks& ranks) {
                         CompileOptions options = deep_options(ranks, true, "cpu");
                         options.memory_budget = 1000;
                         compile(Deep(), deep_loss, options);
                       }),
              Each(::testing::AllOf(HasSubstr("memory budget: the plan needs "),
                                    HasSubstr(" bytes: parameters f32["))));
}

TEST(ShardedParameters, are_saved_as_whole_ones_and_resumed_on_any_ranks) {
  expect_checkpoints_of_whole(parameter_options, bucket_options(3000));
}

TEST(ShardedParameters, take_uploads_of_rank_0_and_reset) {
  expect_bits_of_whole([](const Ranks& ranks, bool shard) {
    CompileOptions options = parameter_options(ranks, shard);
    options.groups = {{.params = "out.bias", .freeze = true}};
    auto trainer = classifier(options);
    const RankResult first = result_of(trainer, 3);
    NamedTensors params = trainer.download_params();
    for (auto& [name, tensor] : params) {
      std::vector<float> values = tensor.floats();
      for (float& each : values) each = 0.5F * each + ranks->rank();
      tensor = HostTensor::from(tensor.shape, values);
    }
    const std::vector<float> hidden = params.at("hidden.weight").floats();
    trainer.upload_params(params);
    trainer.upload_params({{"out.bias", params.at("out.bias")}}, {.partial = true});
    if (ranks->rank() == 0) {
      EXPECT_EQ(trainer.download_params().at("hidden.weight").floats(), hidden);
    } else {
      EXPECT_NE(trainer.download_params().at("hidden.weight").floats(), hidden);
    }
    const RankResult second = result_of(trainer, 3);
    EXPECT_NE(second, first);
    trainer.reset();
    EXPECT_EQ(result_of(trainer, 3), first);
    return second;
  });
}

TEST(ShardedParameters, are_gathered_for_attached_functions_and_captures) {
  for (const std::string kind : {"cpu", "webgpu"}) {
    const auto train = [&](const Ranks& ranks, bool shard) {
      CompileOptions options = parameter_options(ranks, shard);
      if (kind == "webgpu") options.device = {.kind = kind, .allow_software = true};
      auto trainer = compile(Mlp(),
                             [](const Mlp& net, const Inputs& in) {
                               return cross_entropy(
                                   net.out(capture("hidden", relu(net.hidden(in["x"])))), in["t"]);
                             },
                             {.inputs = {{"x", {4, 64}}, {"t", {4}, i32}},
                              .optimizer = optim::SGD{.lr = 0.1},
                              .device = options.device,
                              .distributed = ranks,
                              .shard_parameters = shard});
      const std::vector<float> x = uniform_numbers(4 * 64, 7);
      const std::vector<std::int32_t> t = {1, 2, 3, 4};
      auto forward =
          trainer.attach([](const Mlp& net, const Inputs& in) { return net.out(in["x"]); },
                         {.inputs = {{"x", {2, 32}}}});
      RankResult result;
      for (int i = 0; i < 3; ++i) {
        const StepResult step = trainer.step({{"x", x}, {"t", t}}, {.captures = {"hidden"}});
        result.losses.push_back(step.loss);
        append(step.captures, result.params);
        const std::vector<float> y = forward({{"x", std::vector<float>(64, 0.5F)}}).floats();
        result.params.insert(result.params.end(), y.begin(), y.end());
        append(forward.download_params(), result.params);
      }
      return result;
    };
    const RankResult whole =
        results_of(2, [&](const Ranks& member) { return train(member, false); })[0];
    const std::vector<RankResult> sharded =
        results_of(2, [&](const Ranks& member) { return train(member, true); }, bucket_options(1));
    EXPECT_EQ(sharded[0], sharded[1]);
    if (kind == "cpu") {
      EXPECT_EQ(sharded[0], whole);
    }
    ASSERT_EQ(sharded[0].params.size(), whole.params.size());
    for (std::size_t i = 0; i < whole.params.size(); ++i)
      ASSERT_NEAR(sharded[0].params[i], whole.params[i], 1e-5) << kind << " " << i;
  }
}

TEST(ShardedParameters, refuse_what_needs_whole_ones) {
  EXPECT_THAT(
      on_ranks(
          2,
          [](const Ranks& ranks) {
            const auto compiled = [&](const Change& change) {
              return test::message_of([&] {
                CompileOptions options = parameter_options(ranks, true);
                change(options);
                classifier(options);
              });
            };
            EXPECT_EQ(compiled([](CompileOptions& options) {
                        options.optimizer = optim::Muon{.params = "*weight"};
                      }),
                      "compile: shard_parameters: expected an elementwise optimizer, but Muon "
                      "calls param_view(), which needs whole parameters");
            EXPECT_EQ(
                compiled([](CompileOptions& options) { options.normalize_grads = "*weight"; }),
                "compile: shard_parameters: not supported with normalize_grads, which "
                "needs whole gradients");
            CompileOptions options = parameter_options(ranks, true);
            options.ema_decay = 0.9;
            auto trainer = classifier(options);
            const auto first = [](const Mlp& net, const Inputs& in) { return net.out(in["x"]); };
            EXPECT_EQ(test::message_of([&] { (void)trainer.download_grads(); }),
                      "download_grads: not supported with shard_parameters: no rank has all of "
                      "them");
            EXPECT_EQ(test::message_of([&] {
                        trainer.attach(first,
                                       {.inputs = {{"x", {1, 32}}}, .weights = WeightSource::kEma});
                      }),
                      "attach: the averages are not supported with shard_parameters: each rank "
                      "has only a part");
            auto forward = trainer.attach(first, {.inputs = {{"x", {1, 32}}}});
            EXPECT_EQ(test::message_of([&] { forward.profile({{"x", std::vector<float>(32)}}); }),
                      "profile: not supported with shard_parameters");
          }),
      Each(IsEmpty()));
  EXPECT_EQ(test::message_of([] { classifier(parameter_options(nullptr, true)); }),
            "compile: shard_parameters: expected distributed to be set, got null");
}

TEST(ShardedParameters, must_be_set_and_used_on_all_ranks_alike) {
  EXPECT_THAT(
      on_ranks(
          3, [](const Ranks& ranks) { classifier(parameter_options(ranks, ranks->rank() != 1)); }),
      Each(HasSubstr("the option shard_parameters of rank 1 differs from that of rank 0")));
  EXPECT_THAT(on_ranks(2,
                       [](const Ranks& ranks) {
                         auto trainer = classifier(parameter_options(ranks, true));
                         auto forward = trainer.attach(
                             [](const Mlp& net, const Inputs& in) { return net.out(in["x"]); },
                             {.inputs = {{"x", {1, 32}}}});
                         if (ranks->rank() == 0) {
                           trainer.step();
                         } else {
                           forward({{"x", std::vector<float>(32)}});
                         }
                       },
                       {.timeout_seconds = 60, .bucket_bytes = 1}),
              Each(HasSubstr("shard_parameters: the program, or the order of its launches, of rank "
                             "1 differs from that of rank 0")));
}

}  // namespace
}  // namespace tensorgrad::testing
