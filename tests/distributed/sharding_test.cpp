// SPDX-License-Identifier: MIT
// Optimizer states that are divided among the ranks: the bits of training with whole states, the
// same checkpoints, less memory, and errors for optimizers that are not elementwise.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <iterator>
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

constexpr std::int64_t kMlpElements = 2496;  // with the padding of each parameter to 64

// Returns the elements of the Mlp with the padding to equal shards.
std::int64_t padded(int ranks) {
  const std::int64_t multiple = std::int64_t{64} * ranks;
  return (kMlpElements + multiple - 1) / multiple * multiple;
}

CompileOptions sharding_options(const Ranks& ranks, bool shard) {
  CompileOptions options = classifier_options(ranks);
  options.shard_optimizer = shard;
  return options;
}

// Trains with whole and with sharded states, and compares all bits.
template <class Train>
void expect_same_bits(const Train& train, std::initializer_list<int> sizes = {2, 3}) {
  for (const int ranks : sizes) {
    SCOPED_TRACE(ranks);
    const std::vector<RankResult> whole =
        results_of(ranks, [&](const Ranks& member) { return train(member, false); });
    EXPECT_FALSE(whole[0].params.empty());
    EXPECT_EQ(results_of(ranks, [&](const Ranks& member) { return train(member, true); }), whole);
  }
}

void expect_same_bits_with(const Change& change) {
  expect_same_bits([&](const Ranks& ranks, bool shard) {
    CompileOptions options = sharding_options(ranks, shard);
    change(options);
    auto trainer = classifier(options);
    return result_of(trainer, 5);
  });
}

TEST(ShardedOptimizer, has_the_bits_of_whole_states_for_each_elementwise_optimizer) {
  const std::vector<Optimizer> optimizers = {
      optim::SGD{.lr = 0.1},
      optim::SGD{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .dampening = 0.1},
      optim::Adam{.lr = 1e-2, .amsgrad = true},
      optim::AdamW{.lr = 1e-2, .beta1 = optim::adjustable(0.8)},
      optim::NAdam{.lr = 1e-2},
      optim::RAdam{.lr = 1e-2},
      optim::RMSprop{.lr = 1e-2, .momentum = 0.5, .centered = true},
      optim::Adagrad{.lr = 1e-2},
      optim::Adadelta{.lr = 1.0},
      optim::Lion{.lr = 1e-3}};
  for (const Optimizer& optimizer : optimizers) {
    SCOPED_TRACE(optimizer.name());
    expect_same_bits_with([&](CompileOptions& options) { options.optimizer = optimizer; });
  }
}

TEST(ShardedOptimizer, clips_scales_and_accumulates_the_whole_gradient) {
  expect_same_bits([](const Ranks& ranks, bool shard) {
    CompileOptions options = sharding_options(ranks, shard);
    options.optimizer = optim::AdamW{.lr = 1e-2};
    options.accumulate = 3;
    options.normalize_grads = "*weight";
    options.clip_grad_value = 0.01;
    options.clip_grad_norm = 0.02;
    options.ema_decay = 0.9;
    options.loss_scale = LossScale{.init_scale = 1024, .growth_interval = 2};
    options.groups = {{.params = "out.*", .lr_factor = 0.5, .weight_decay = 0.5}};
    auto trainer = classifier(options);
    RankResult result = result_of(trainer, 8);  // within an accumulation
    result.losses.push_back(static_cast<float>(trainer.grad_norm()));
    result.losses.push_back(static_cast<float>(trainer.loss_scale()));
    append(trainer.download_ema(), result.params);
    EXPECT_GT(trainer.grad_norm(), 0);
    return result;
  });
}

TEST(ShardedOptimizer, leaves_frozen_parameters_and_rows) {
  expect_same_bits_with([](CompileOptions& options) {
    options.groups = {{.params = "hidden.bias", .freeze = true},
                      {.params = "hidden.weight", .rows = [](const std::string&, const Shape&) {
                         return std::vector<RowRange>{{1, 7}, {20, 30}};
                       }}};
  });
}

CompileOptions scale_options(const Ranks& ranks, bool shard) {
  return {.inputs = {{"x", {2}}},
          .optimizer = optim::Adam{.lr = 0.25},
          .skip_nonfinite = true,
          .device = {.kind = "cpu", .threads = 1},
          .distributed = ranks,
          .shard_optimizer = shard};
}

Tensor scale_loss(const Scale& net, const Inputs& in) { return mean(square(in["x"] * net.w)); }

TEST(ShardedOptimizer, divides_fewer_parameters_than_ranks_and_skips_updates_on_all) {
  expect_same_bits(
      [](const Ranks& ranks, bool shard) {
        auto trainer = compile(Scale(), scale_loss, scale_options(ranks, shard));
        RankResult result;
        for (int i = 0; i < 4; ++i) {
          std::vector<float> x = {1, static_cast<float>(ranks->rank() + i)};
          if (i == 2 && ranks->rank() == 1) x[0] = std::numeric_limits<float>::infinity();
          const float loss = trainer.step({{"x", x}}).loss;
          EXPECT_EQ(std::isfinite(loss), i != 2);
          result.losses.push_back(std::isfinite(loss) ? loss : -1);
          append(trainer.download_params(), result.params);
        }
        EXPECT_EQ(trainer.skipped_updates(), 1);
        EXPECT_EQ(result.params[1], result.params[2]);  // the third update is skipped
        EXPECT_NE(result.params[2], result.params[3]);
        append(trainer.download_optimizer(), result.params);
        return result;
      },
      {2, 3, 5});
}

TEST(ShardedOptimizer, exchanges_parameters_in_pieces_of_any_size) {
  const auto train = [](std::int64_t bytes, bool shard) {
    return results_of(
        3,
        [&](const Ranks& ranks) {
          auto trainer = classifier(sharding_options(ranks, shard));
          return result_of(trainer, 4);
        },
        bucket_options(bytes));
  };
  const RankResult whole = train(kDefaultBucketBytes, false)[0];
  for (const std::int64_t bytes : {1, 1000, 5000}) EXPECT_THAT(train(bytes, true), Each(whole));
}

TEST(ShardedOptimizer, takes_a_part_of_the_memory) {
  for (const int ranks : {1, 2, 3}) {
    const auto bytes = results_of(ranks, [&](const Ranks& member) {
      auto trainer = classifier(sharding_options(member, true));
      const CompileReport report = trainer.report();
      const auto whole = classifier(sharding_options(member, false)).report();
      const std::int64_t elements = padded(ranks);
      EXPECT_EQ(report.unsharded_optimizer_bytes, 2 * 4 * elements);
      EXPECT_EQ(report.optimizer_bytes, 2 * 4 * elements / ranks);
      EXPECT_EQ(whole.optimizer_bytes, 2 * 4 * kMlpElements);
      EXPECT_EQ(whole.unsharded_optimizer_bytes, whole.optimizer_bytes);
      const std::string line = "\noptimizer " + std::to_string(report.optimizer_bytes) + " bytes (";
      if (ranks == 1) {
        EXPECT_THAT(trainer.explain(), ::testing::Not(HasSubstr("\noptimizer ")));
      } else {
        EXPECT_THAT(trainer.explain(), HasSubstr(line));
        EXPECT_THAT(trainer.explain(),
                    HasSubstr(") on each of " + std::to_string(ranks) + " ranks, " +
                              std::to_string(report.unsharded_optimizer_bytes) + " bytes ("));
      }
      return report.peak_bytes;
    });
    EXPECT_THAT(bytes, Each(bytes[0]));
  }
}

// Compares the peak with that of whole states. No other buffer may grow, such as one with the whole
// of the changed gradients.
TEST(ShardedOptimizer, needs_no_other_memory) {
  struct Case {
    Change change;
    int sharded, whole;  // states that are divided, and other arrays of all parameters
  };
  // Parameters, gradients and their sum over the ranks are always whole.
  const std::vector<Case> cases = {
      {[](CompileOptions&) {}, 2, 3},
      {[](CompileOptions& options) { options.clip_grad_norm = 0; }, 2, 3},
      {[](CompileOptions& options) { options.clip_grad_value = 0.1; }, 2, 3},
      {[](CompileOptions& options) {
         options.accumulate = 2;
         options.ema_decay = 0.9;
         options.loss_scale = LossScale{};
       },
       3, 4},
  };
  for (const int ranks : {2, 3}) {
    for (const Case& each : cases) {
      SCOPED_TRACE(std::to_string(ranks) + " " + std::to_string(&each - cases.data()));
      results_of(ranks, [&](const Ranks& member) {
        const auto peak = [&](bool shard) {
          CompileOptions options = sharding_options(member, shard);
          each.change(options);
          return classifier(options).report().peak_bytes;
        };
        const std::int64_t grown = 4 * each.whole * (padded(ranks) - kMlpElements);
        const std::int64_t saved = 4 * each.sharded * (kMlpElements - padded(ranks) / ranks);
        EXPECT_LE(peak(true), peak(false) + grown - saved);
        return 0;
      });
    }
  }
}

TEST(ShardedOptimizer, writes_the_checkpoint_of_whole_states_and_resumes_on_any_ranks) {
  expect_checkpoints_of_whole(sharding_options, {.timeout_seconds = 60});
}

TEST(ShardedOptimizer, takes_uploads_of_rank_0_and_resets) {
  const auto train = [](const Ranks& ranks, bool shard) {
    CompileOptions options = sharding_options(ranks, shard);
    options.ema_decay = 0.5;
    auto trainer = classifier(options);
    const RankResult first = result_of(trainer, 3);
    auto states = trainer.download_optimizer();
    for (auto& [name, tensor] : states) {
      const std::vector<float> values(tensor.floats().size(), 0.5F + ranks->rank());
      tensor = HostTensor::from(tensor.shape, values);
    }
    trainer.upload_optimizer(states);
    std::vector<float> uploaded;
    append(trainer.download_optimizer(), uploaded);
    EXPECT_THAT(uploaded, Each(0.5F));
    states.erase(std::next(states.begin()), states.end());
    trainer.upload_optimizer(states, {.partial = true});
    uploaded.clear();
    append(trainer.download_optimizer(), uploaded);
    EXPECT_THAT(uploaded, Each(0.5F));
    const RankResult second = result_of(trainer, 3);
    EXPECT_NE(second, first);
    trainer.reset();
    EXPECT_EQ(result_of(trainer, 3), first);
    return second;
  };
  expect_same_bits(train);
}

// Divides the gradient by its norm, which a rank does not know from its part.
struct NormalizedDescent {
  Schedule lr = 0.1;
  void operator()(optim::Update& u) const {
    u.set_param(u.param - u.lr * u.grad / sqrt(sum(square(u.grad))));
  }
};

// Adds a number that depends on the place of an element.
struct PlacedDescent {
  static constexpr const char* kName = "PlacedDescent";
  Schedule lr = 0.1;
  void operator()(optim::Update& u) const {
    u.set_param(u.param - u.lr * (u.grad + cast(arange(u.grad.size(0)), f32)));
  }
};

TEST(ShardedOptimizer, refuses_what_is_not_elementwise) {
  const auto errors = on_ranks(2, [](const Ranks& ranks) {
    const auto compiled = [&](const Change& change) {
      return test::message_of([&] {
        CompileOptions options = sharding_options(ranks, true);
        change(options);
        classifier(options);
      });
    };
    EXPECT_EQ(compiled([](CompileOptions&) {}), "no error");
    EXPECT_EQ(compiled([](CompileOptions& options) {
                options.optimizer = optim::Muon{.params = "*weight"};
              }),
              "compile: shard_optimizer: expected an elementwise optimizer, but Muon calls "
              "param_view(), which needs whole parameters");
    EXPECT_EQ(compiled([](CompileOptions& options) { options.optimizer = NormalizedDescent{}; }),
              "compile: shard_optimizer: expected an elementwise optimizer, but this one uses the "
              "op 'sum'");
    EXPECT_EQ(compiled([](CompileOptions& options) { options.optimizer = PlacedDescent{}; }),
              "compile: shard_optimizer: expected an elementwise optimizer, but PlacedDescent uses "
              "the op 'iota'");
    EXPECT_EQ(compiled([](CompileOptions& options) {
                options.optimizer = PlacedDescent{};
                options.shard_optimizer = false;
              }),
              "no error");
    CompileOptions options = sharding_options(ranks, true);
    options.ema_decay = 0.9;
    auto trainer = classifier(options);
    EXPECT_EQ(test::message_of([&] {
                trainer.attach([](const Mlp& net, const Inputs& in) { return net.out(in["x"]); },
                               {.inputs = {{"x", {1, 32}}}, .weights = WeightSource::kEma});
              }),
              "attach: the averages are not supported with shard_optimizer: each rank has only a "
              "part");
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_EQ(test::message_of([] { classifier(sharding_options(nullptr, true)); }),
            "compile: shard_optimizer: expected distributed to be set, got null");
}

TEST(ShardedOptimizer, must_be_set_on_all_ranks_alike) {
  EXPECT_THAT(
      on_ranks(3,
               [](const Ranks& ranks) { classifier(sharding_options(ranks, ranks->rank() != 1)); }),
      Each(HasSubstr("the option shard_optimizer of rank 1 differs from that of rank 0")));
  EXPECT_THAT(on_ranks(2,
                       [](const Ranks& ranks) {
                         CompileOptions options = sharding_options(ranks, true);
                         if (ranks->rank() == 1) options.optimizer = optim::SGD{.lr = 1e-2};
                         classifier(options);
                       }),
              Each(HasSubstr("the loss or the optimizer of rank 1 differs")));
}

TEST(ShardedOptimizer, has_the_bits_of_whole_states_on_webgpu) {
  expect_same_bits_with([](CompileOptions& options) {
    options.device = {.kind = "webgpu", .allow_software = true};
    options.optimizer = optim::AdamW{.lr = 1e-2};
    options.accumulate = 2;
    options.ema_decay = 0.9;
    options.groups = {{.params = "out.*", .lr_factor = 0.5}};
  });
}

TEST(ShardedOptimizer, trains_a_language_model_to_the_bits_of_whole_states) {
  expect_same_bits(
      [](const Ranks& ranks, bool shard) { return train_language_model(ranks, shard); });
}

}  // namespace
}  // namespace tensorgrad::testing
