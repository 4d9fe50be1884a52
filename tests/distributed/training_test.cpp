// SPDX-License-Identifier: MIT
// Training on several ranks: the results of one process with the whole batch, the same bits in
// every run and on every rank, checkpoints for another number of ranks, and errors.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include "distributed/ranks.h"
#include "distributed/results.h"
#include "support/message_of.h"
#include "support/temp_dir.h"

namespace tensorgrad::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Ranks = std::shared_ptr<Communicator>;

void expect_near(const std::vector<float>& got, const std::vector<float>& expected,
                 double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
}

// Compares ranks with one process that has the whole batch, and with each other.
template <class Train>
void expect_as_one_process(const Train& train, double tolerance) {
  const RankResult one = train(nullptr);
  for (const int ranks : {1, 2, 3}) {
    SCOPED_TRACE(ranks);
    const std::vector<RankResult> all = results_of(ranks, train);
    expect_near(all[0].losses, one.losses, tolerance);
    expect_near(all[0].params, one.params, tolerance);
    EXPECT_THAT(all, Each(all[0]));
    EXPECT_EQ(results_of(ranks, train), all);
    if (ranks == 1) {
      EXPECT_EQ(all[0], one);
    }
  }
}

TEST(Distributed, trains_a_classifier_as_one_process_does) {
  expect_as_one_process(train_classifier, 1e-4);
}

TEST(Distributed, trains_a_language_model_as_one_process_does) {
  expect_as_one_process([](const Ranks& ranks) { return train_language_model(ranks); }, 1e-3);
}

TEST(Distributed, treats_the_gradients_of_all_ranks_as_one) {
  const auto train = [](const Ranks& ranks) {
    CompileOptions options = classifier_options(ranks);
    options.accumulate = 3;
    options.normalize_grads = "*weight";
    options.clip_grad_value = 0.01;
    options.clip_grad_norm = 0.02;
    options.ema_decay = 0.9;
    options.loss_scale = LossScale{.init_scale = 1024, .growth_interval = 2};
    options.groups = {{.params = "out.*", .lr_factor = 0.5}};
    auto trainer = classifier(options);
    RankResult result{trainer.run(9), all_params(trainer)};
    result.losses.push_back(static_cast<float>(trainer.grad_norm()));
    result.losses.push_back(static_cast<float>(trainer.loss_scale()));
    for (const auto& [name, tensor] : trainer.download_ema()) {
      const std::vector<float> values = tensor.floats();
      result.params.insert(result.params.end(), values.begin(), values.end());
    }
    return result;
  };
  const RankResult one = train(nullptr);
  EXPECT_EQ(one.losses.back(), 2048);
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    const std::vector<RankResult> all = results_of(ranks, train);
    expect_near(all[0].losses, one.losses, 1e-4);
    expect_near(all[0].params, one.params, 1e-4);
    EXPECT_THAT(all, Each(all[0]));
  }
}

TEST(Distributed, trains_in_mixed_precision) {
  const auto train = [](const Ranks& ranks) {
    CompileOptions options = classifier_options(ranks);
    options.mixed_precision = true;
    auto trainer = classifier(options);
    return RankResult{trainer.run(6), all_params(trainer)};
  };
  const RankResult one = train(nullptr);
  const std::vector<RankResult> all = results_of(2, train);
  expect_near(all[0].losses, one.losses, 1e-2);
  EXPECT_THAT(all, Each(all[0]));
}

struct Line {
  nn::Linear line{2, 1};
  TG_MODULE(line)
};

CompileOptions line_options(const Ranks& ranks) {
  return {.inputs = {{"x", {2, 2}}},
          .optimizer = optim::SGD{.lr = 0.1},
          .device = {.kind = "cpu", .threads = 1},
          .distributed = ranks};
}

Tensor line_loss(const Line& net, const Inputs& in) { return mean(square(net.line(in["x"]))); }

TEST(Distributed, skips_an_update_on_all_ranks_if_the_gradient_of_one_is_infinite) {
  struct Result {
    std::int64_t skipped = 0;
    std::vector<float> before, after, later;
  };
  const auto all = results_of(2, [](const Ranks& ranks) {
    CompileOptions options = line_options(ranks);
    options.skip_nonfinite = true;
    auto trainer = compile(Line(), line_loss, options);
    Result result;
    result.before = all_params(trainer);
    std::vector<float> x = {1, 2, 3, 4};
    if (ranks->rank() == 1) x[2] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(std::isfinite(trainer.step({{"x", x}}).loss));
    result.after = all_params(trainer);
    result.skipped = trainer.skipped_updates();
    x[2] = 1;
    EXPECT_TRUE(std::isfinite(trainer.step({{"x", x}}).loss));
    result.later = all_params(trainer);
    EXPECT_EQ(trainer.skipped_updates(), 1);
    return result;
  });
  for (const Result& each : all) {
    EXPECT_EQ(each.skipped, 1);
    EXPECT_EQ(each.after, each.before);
    EXPECT_NE(each.later, each.before);
    EXPECT_EQ(each.later, all[0].later);
  }
}

TEST(Distributed, averages_gradients_losses_and_losses_of_queued_steps) {
  // The gradient of the mean of x * w is the mean of x, here 2 on rank 0 and 6 on rank 1.
  struct Weight {
    Parameter w{{1}, init::constant(1)};
    TG_MODULE(w)
  };
  const auto all = results_of(2, [](const Ranks& ranks) {
    auto trainer =
        compile(Weight(), [](const Weight& net, const Inputs& in) { return mean(in["x"] * net.w); },
                {.inputs = {{"x", {2}}},
                 .optimizer = optim::SGD{.lr = 0.25},
                 .device = {.kind = "cpu", .threads = 1},
                 .distributed = ranks});
    const float first = ranks->rank() == 0 ? 1 : 5;
    const std::vector<float> x = {first, first + 2};
    RankResult result;
    result.losses.push_back(trainer.step({{"x", x}}).loss);
    result.params = all_params(trainer);
    result.losses.push_back(trainer.step({{"x", x}}).loss);
    return result;
  });
  for (const RankResult& each : all) {
    EXPECT_THAT(each.losses, ::testing::ElementsAre(4, 0));
    EXPECT_THAT(each.params, ::testing::ElementsAre(0));
  }
}

TEST(Distributed, reads_the_mean_losses_of_submitted_steps) {
  const auto train = [](const Ranks& ranks) {
    auto trainer = classifier(classifier_options(ranks));
    trainer.submit(3);
    trainer.submit(2);
    return trainer.losses();
  };
  const std::vector<float> one = train(nullptr);
  EXPECT_EQ(one.size(), 5U);
  const auto all = results_of(2, train);
  expect_near(all[0], one, 1e-4);
  EXPECT_EQ(all[0], all[1]);
}

struct Normalized {
  nn::Linear in{3, 4};
  nn::BatchNorm norm{4};
  TG_MODULE(in, norm)
};

TEST(Distributed, averages_running_statistics) {
  const auto train = [](const Ranks& ranks) {
    const std::int64_t batch = ranks == nullptr ? 8 : 4;
    auto trainer = compile(Normalized(),
                           [](const Normalized& net, const Inputs& in) {
                             return mean(square(net.norm(net.in(in["x"])) - 1.0));
                           },
                           {.inputs = {{"x", {batch, 3}}},
                            .optimizer = optim::SGD{.lr = 0},
                            .device = {.kind = "cpu", .threads = 1},
                            .distributed = ranks});
    std::vector<float> x = uniform_numbers(8 * 3, 5);
    if (ranks != nullptr) x = {x.begin() + ranks->rank() * 12, x.begin() + ranks->rank() * 12 + 12};
    trainer.step({{"x", x}});
    return trainer.download_buffers().at("norm.running_mean").floats();
  };
  const auto all = results_of(2, train);
  EXPECT_EQ(all[0], all[1]);
  expect_near(all[0], train(nullptr), 1e-5);  // the mean of a batch is that of its halves
}

struct Dropped {
  nn::Linear in{64, 10};
  TG_MODULE(in)
};

TEST(Distributed, draws_other_random_numbers_on_each_rank) {
  const auto train = [](const Ranks& ranks) {
    auto trainer = compile(Dropped(),
                           [](const Dropped& net, const Inputs& in) {
                             const Tensor kept = dropout(in["x"], 0.5);
                             capture("kept", kept);
                             return mean(square(net.in(kept)));
                           },
                           {.inputs = {{"x", {1, 64}}},
                            .optimizer = optim::SGD{.lr = 0.1},
                            .seed = 8,
                            .device = {.kind = "cpu", .threads = 1},
                            .distributed = ranks});
    const std::vector<float> x(64, 1);
    return trainer.step({{"x", x}}, {.captures = {"kept"}}).captures.at("kept").floats();
  };
  const auto all = results_of(2, train);
  EXPECT_NE(all[0], all[1]);
  EXPECT_EQ(all[0], train(nullptr));
  EXPECT_EQ(results_of(2, train), all);
}

TEST(Distributed, starts_with_the_parameters_of_rank_0) {
  const auto all = results_of(3, [](const Ranks& ranks) {
    CompileOptions options = line_options(ranks);
    options.initial = [rank = ranks->rank()](const std::string&, const Shape&) {
      return std::optional(init::constant(rank + 1));
    };
    auto trainer = compile(Line(), line_loss, options);
    RankResult result{{}, all_params(trainer)};
    auto params = trainer.download_params();
    for (auto& [name, tensor] : params) {
      const std::vector<float> values(tensor.floats().size(), 10.0F + ranks->rank());
      tensor = HostTensor::from(tensor.shape, values);
    }
    trainer.upload_params(params);
    result.losses = all_params(trainer);
    return result;
  });
  for (const RankResult& each : all) {
    EXPECT_THAT(each.params, Each(1));
    EXPECT_THAT(each.losses, Each(10));
  }
}

TEST(Distributed, resumes_on_another_number_of_ranks) {
  const test::TempDir folder;
  const std::string file = folder / "checkpoint";
  const auto whole = results_of(3, [&](const Ranks& ranks) {
    auto trainer = classifier(classifier_options(ranks));
    trainer.run(8);
    trainer.save(ranks->rank() == 0 ? file : file + " of another rank");
    return RankResult{trainer.run(6), all_params(trainer)};
  });
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_FALSE(std::filesystem::exists(file + " of another rank"));
  const auto resumed = [&](const Ranks& ranks) {
    auto trainer = classifier(classifier_options(ranks));
    trainer.load(file);
    return RankResult{trainer.run(6), all_params(trainer)};
  };
  EXPECT_EQ(results_of(3, resumed), whole);
  expect_near(results_of(2, resumed)[0].params, whole[0].params, 1e-4);
  expect_near(resumed(nullptr).losses, whole[0].losses, 1e-4);
}

TEST(Distributed, fails_on_all_ranks_if_one_cannot_load) {
  const test::TempDir folder;
  const std::string file = folder / "checkpoint";
  classifier(classifier_options(nullptr)).save(file);
  const auto errors = on_ranks(2, [&](const Ranks& ranks) {
    auto trainer = classifier(classifier_options(ranks));
    trainer.load(ranks->rank() == 0 ? file : file + " that is missing");
  });
  EXPECT_THAT(errors[0], HasSubstr("load: failed on rank 1"));
  EXPECT_THAT(errors[1], HasSubstr("that is missing"));
}

TEST(Distributed, refuses_another_model_or_other_options) {
  const auto errors_with = [](const std::function<void(CompileOptions&)>& change) {
    return on_ranks(3, [&](const Ranks& ranks) {
      CompileOptions options = classifier_options(ranks);
      if (ranks->rank() == 2) change(options);
      classifier(options);
    });
  };
  EXPECT_THAT(errors_with([](CompileOptions&) {}), Each(IsEmpty()));
  EXPECT_THAT(errors_with([](CompileOptions& options) { options.seed = 4; }),
              Each(HasSubstr("of rank 2 differs from that of rank 0")));
  EXPECT_THAT(errors_with([](CompileOptions& options) { options.optimizer = optim::SGD{}; }),
              Each(HasSubstr("the loss or the optimizer of rank 2 differs")));
  EXPECT_THAT(
      errors_with([](CompileOptions& options) { options.optimizer = optim::Adam{.lr = 2e-2}; }),
      Each(HasSubstr("accumulate or lr, of rank 2 differs")));
  EXPECT_THAT(errors_with([](CompileOptions& options) { options.accumulate = 2; }),
              Each(HasSubstr("of rank 2 differs")));
  const auto other_model = on_ranks(2, [](const Ranks& ranks) {
    if (ranks->rank() == 0) {
      compile(Line(), line_loss, line_options(ranks));
    } else {
      const auto loss = [](const Mlp& net, const Inputs& in) {
        return mean(square(net.out(matmul(in["x"], zeros({2, 32})))));
      };
      compile(Mlp(), loss, line_options(ranks));
    }
  });
  EXPECT_THAT(other_model, Each(HasSubstr("the model of rank 1 differs")));
}

TEST(Distributed, ends_on_all_ranks_if_one_fails) {
  const auto errors = on_ranks(3, [](const Ranks& ranks) {
    auto trainer = classifier(classifier_options(ranks));
    trainer.run(2);
    if (ranks->rank() == 1) throw UserError("out of data");
    trainer.run(2);
  });
  EXPECT_THAT(errors[0], HasSubstr("all_reduce_sum: rank 1 has ended"));
  EXPECT_THAT(errors[1], HasSubstr("out of data"));
  EXPECT_THAT(errors[2], HasSubstr("all_reduce_sum: rank 1 has ended"));
}

TEST(Distributed, refuses_what_it_does_not_support) {
  const auto errors = on_ranks(2, [](const Ranks& ranks) {
    const auto compiled = [&](const std::function<void(CompileOptions&)>& change) {
      return test::message_of([&] {
        CompileOptions options = line_options(ranks);
        change(options);
        compile(Line(), line_loss, options);
      });
    };
    EXPECT_EQ(compiled([](CompileOptions& options) { options.detect_nan = true; }),
              "compile: detect_nan: not supported with distributed");
    EXPECT_EQ(compiled([](CompileOptions& options) { options.recovery.snapshot_steps = 5; }),
              "compile: recovery: expected snapshot_steps = 0 with distributed, got 5");
    EXPECT_THAT(test::message_of([&] {
                  compile(Line(), {ObjectiveSpec<Line>{.name = "a",
                                                       .loss = line_loss,
                                                       .options = {.inputs = {{"x", {2, 2}}},
                                                                   .optimizer = optim::SGD{},
                                                                   .distributed = ranks}}});
                }),
                "objective 'a': distributed: not supported with several objectives");
    CompileOptions few = classifier_options(ranks);
    few.batch = 40;
    EXPECT_EQ(test::message_of([&] { compile(Mlp(), mlp_loss, few); }),
              "compile: 2 ranks with batches of 40 need a dataset of at least 80 rows, got 75");

    CompileOptions options = line_options(ranks);
    options.accumulate = 2;
    auto trainer = compile(Line(), line_loss, options);
    const std::vector<float> x = {1, 2, 3, 4};
    EXPECT_EQ(test::message_of([&] { trainer.step_for(1, {{"x", x}}); }),
              "step_for: not supported in distributed training");
    EXPECT_EQ(test::message_of([&] { trainer.profile({{"x", x}}); }),
              "profile: not supported in distributed training");
    trainer.step({{"x", x}});
    EXPECT_THAT(test::message_of([&] { (void)trainer.save_bytes(); }),
                "save: not supported within an accumulation of distributed training; call it after "
                "an update");
    trainer.step({{"x", x}});
    EXPECT_FALSE(trainer.save_bytes().empty());
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(Distributed, trains_on_webgpu_as_one_process_does) {
  const auto train = [](const Ranks& ranks) {
    CompileOptions options = classifier_options(ranks);
    options.device = {.kind = "webgpu", .allow_software = true};
    options.accumulate = 2;
    auto trainer = classifier(options);
    return RankResult{trainer.run(6), all_params(trainer)};
  };
  const RankResult one = train(nullptr);
  const std::vector<RankResult> all = results_of(2, train);
  expect_near(all[0].losses, one.losses, 1e-4);
  expect_near(all[0].params, one.params, 1e-3);
  EXPECT_THAT(all, Each(all[0]));
}

TEST(DataLoaderShards, take_turns_with_the_batches_of_one_loader) {
  const auto get = [](std::int64_t i) -> NamedTensors {
    return {{"i", HostTensor::from({1}, std::vector<std::int32_t>{static_cast<std::int32_t>(i)})}};
  };
  const auto indices = [](DataLoader& loader) {
    const Batch batch = loader.next();
    std::vector<std::int32_t> values(static_cast<std::size_t>(batch.samples));
    std::memcpy(values.data(), batch.fields.at("i").bytes.data(), values.size() * 4);
    return values;
  };
  DataLoader whole(23, get, {.batch = 2, .seed = 6});
  DataLoader first(23, get, {.batch = 2, .seed = 6, .num_shards = 3, .shard = 0});
  DataLoader third(23, get, {.batch = 2, .seed = 6, .num_shards = 3, .shard = 2});
  EXPECT_EQ(first.batches_per_epoch(), 3);  // of 23 samples, 3 * 3 * 2 are used
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int i = 0; i < 11; ++i) {
      const std::vector<std::int32_t> batch = indices(whole);
      if (i < 9 && i % 3 == 0) {
        EXPECT_EQ(indices(first), batch);
      } else if (i < 9 && i % 3 == 2) {
        EXPECT_EQ(indices(third), batch);
      }
    }
  }
  EXPECT_EQ(first.state().epoch, 2);
}

TEST(DataLoaderShards, refuse_options_out_of_range) {
  const auto error = [](const LoaderOptions& options) {
    return test::message_of(
        [&] { DataLoader loader(10, [](std::int64_t) -> NamedTensors { return {}; }, options); });
  };
  EXPECT_THAT(error({.num_shards = 2, .shard = 2}),
              HasSubstr("expected shard < num_shards, got shard 2 of 2"));
  EXPECT_THAT(error({.num_shards = 0}), HasSubstr("got shard 0 of 0"));
  EXPECT_THAT(error({.drop_last = false, .num_shards = 2}), HasSubstr("drop_last must be set"));
  EXPECT_THAT(error({.batch = 4, .num_shards = 3}),
              HasSubstr("3 batches of 4 are more than the 10 samples"));
  EXPECT_EQ(error({.batch = 5, .num_shards = 2}), "no error");
}

}  // namespace
}  // namespace tensorgrad::testing
