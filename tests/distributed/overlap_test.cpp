// SPDX-License-Identifier: MIT
// The exchange of gradients in buckets: it begins before the backward pass has ended, and changes
// neither results nor what happens if a rank fails.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

#include "distributed/ranks.h"

namespace tensorgrad::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Ranks = std::shared_ptr<Communicator>;

constexpr std::int64_t kGradients = 64 * 32 + 32 + 32 * 10 + 10;  // of the classifier

// Forwards all calls, and calls a function before each exchange of gradients.
class Watched : public Communicator {
 public:
  using Exchange = std::function<void(std::size_t call, std::size_t elements)>;
  Watched(Ranks inner, Exchange before) : inner_(std::move(inner)), before_(std::move(before)) {}

  [[nodiscard]] int rank() const override { return inner_->rank(); }
  [[nodiscard]] int size() const override { return inner_->size(); }
  void all_reduce_sum(std::span<float> values) override { inner_->all_reduce_sum(values); }
  void all_reduce_sum_into(std::span<const float> mine, std::span<float> sum) override {
    before_(calls_++, mine.size());
    inner_->all_reduce_sum_into(mine, sum);
  }
  void broadcast(std::span<std::byte> bytes) override { inner_->broadcast(bytes); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    inner_->all_gather(mine, all);
  }
  [[nodiscard]] std::int64_t bucket_bytes() const override { return inner_->bucket_bytes(); }

 private:
  Ranks inner_;
  Exchange before_;
  std::size_t calls_ = 0;
};

// An engine as users write it: only the functions that must be overridden.
class Minimal final : public Communicator {
 public:
  explicit Minimal(Ranks inner) : inner_(std::move(inner)) {}
  [[nodiscard]] int rank() const override { return inner_->rank(); }
  [[nodiscard]] int size() const override { return inner_->size(); }
  void all_reduce_sum(std::span<float> values) override { inner_->all_reduce_sum(values); }
  void broadcast(std::span<std::byte> bytes) override { inner_->broadcast(bytes); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    inner_->all_gather(mine, all);
  }

 private:
  Ranks inner_;
};

DeviceOptions device_of(const std::string& kind) {
  return {.kind = kind, .threads = kind == "cpu" ? 1 : 0, .allow_software = true};
}

// Runs `train` on two ranks that exchange buckets of this size.
std::vector<RankResult> in_buckets(std::int64_t bytes,
                                   const std::function<RankResult(const Ranks&)>& train) {
  std::vector<RankResult> results(2);
  EXPECT_THAT(on_ranks(2,
                       [&](const Ranks& ranks) {
                         results[static_cast<std::size_t>(ranks->rank())] = train(ranks);
                       },
                       {.timeout_seconds = 60, .bucket_bytes = bytes}),
              Each(IsEmpty()));
  return results;
}

std::function<RankResult(const Ranks&)> training_on(const std::string& kind, int accumulate) {
  return [=](const Ranks& ranks) {
    CompileOptions options = classifier_options(ranks);
    options.device = device_of(kind);
    options.accumulate = accumulate;
    options.skip_nonfinite = true;
    auto trainer = classifier(options);
    RankResult result{trainer.run(8), all_params(trainer)};
    for (int i = 0; i < 2 * accumulate; ++i) result.losses.push_back(trainer.step().loss);
    result.losses.push_back(static_cast<float>(trainer.grad_norm()));
    return result;
  };
}

void expect_same_bits_in_all_buckets(const std::string& kind) {
  for (const int accumulate : {1, 2}) {
    SCOPED_TRACE(accumulate);
    const auto train = training_on(kind, accumulate);
    const std::vector<RankResult> whole = in_buckets(kDefaultBucketBytes, train);
    EXPECT_EQ(whole[0], whole[1]);
    for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{2000}, std::int64_t{1} << 40}) {
      SCOPED_TRACE(bytes);
      EXPECT_THAT(in_buckets(bytes, train), Each(whole[0]));
    }
    const RankResult one = train(nullptr);
    for (std::size_t i = 0; i < one.params.size(); ++i)
      ASSERT_NEAR(whole[0].params[i], one.params[i], 1e-3) << i;
  }
}

TEST(Overlap, buckets_of_any_size_have_the_bits_of_one_bucket) {
  expect_same_bits_in_all_buckets("cpu");
}

TEST(Overlap, buckets_of_any_size_have_the_bits_of_one_bucket_on_webgpu) {
  expect_same_bits_in_all_buckets("webgpu");
}

TEST(Overlap, three_ranks_in_buckets_train_as_one_process_does) {
  std::vector<RankResult> results(3);
  EXPECT_THAT(on_ranks(3,
                       [&](const Ranks& ranks) {
                         results[static_cast<std::size_t>(ranks->rank())] = train_classifier(ranks);
                       },
                       {.timeout_seconds = 60, .bucket_bytes = 1}),
              Each(IsEmpty()));
  EXPECT_THAT(results, Each(results[0]));
  const RankResult one = train_classifier(nullptr);
  for (std::size_t i = 0; i < one.params.size(); ++i)
    ASSERT_NEAR(results[0].params[i], one.params[i], 1e-3) << i;
}

TEST(Overlap, a_step_exchanges_each_gradient_once_and_accumulating_steps_none) {
  for (const std::string kind : {"cpu", "webgpu"}) {
    SCOPED_TRACE(kind);
    std::mutex mutex;
    std::vector<std::size_t> sizes;
    std::vector<std::size_t> after_steps;
    in_buckets(1, [&](const Ranks& ranks) {
      const bool first = ranks->rank() == 0;
      CompileOptions options = classifier_options(
          std::make_shared<Watched>(ranks, [&, first](std::size_t, std::size_t elements) {
            const std::lock_guard lock(mutex);
            if (first) sizes.push_back(elements);
          }));
      options.device = device_of(kind);
      options.accumulate = 2;
      auto trainer = classifier(options);
      for (int i = 0; i < 4; ++i) {
        trainer.step();
        const std::lock_guard lock(mutex);
        if (first) after_steps.push_back(sizes.size());
      }
      return RankResult{};
    });
    ASSERT_EQ(after_steps.size(), 4);
    EXPECT_EQ(after_steps[0], 0);
    EXPECT_EQ(after_steps[2], after_steps[1]);
    EXPECT_EQ(after_steps[3], 2 * after_steps[1]);
    EXPECT_GE(after_steps[1], 2);
    const auto end = sizes.begin() + static_cast<std::ptrdiff_t>(after_steps[1]);
    std::size_t sum = 0;
    for (auto each = sizes.begin(); each != end; ++each) sum += *each;
    EXPECT_GE(sum, static_cast<std::size_t>(kGradients));  // with the gaps between parameters
    EXPECT_LE(sum, static_cast<std::size_t>(kGradients + 4 * 64));
  }
}

// The gradients are in device memory before the first exchange only if the launches of the whole
// backward pass were submitted before it.
TEST(Overlap, backward_pass_is_submitted_before_the_first_exchange_on_webgpu) {
  std::atomic<int> compared = 0;
  in_buckets(1, [&](const Ranks& ranks) {
    std::optional<Trainer<Mlp>> trainer;
    std::optional<NamedTensors> early;
    std::size_t calls = 0;
    CompileOptions options =
        classifier_options(std::make_shared<Watched>(ranks, [&](std::size_t call, std::size_t) {
          if (call == 0) early = trainer->download_grads();
          ++calls;
        }));
    options.device = device_of("webgpu");
    trainer.emplace(classifier(options));
    trainer->step();
    EXPECT_GE(calls, 2);
    const NamedTensors late = trainer->download_grads();
    if (!early) {
      ADD_FAILURE() << "nothing was exchanged";
      return RankResult{};
    }
    for (const auto& [name, tensor] : late) {
      EXPECT_EQ(early->at(name).floats(), tensor.floats()) << name;
      const std::vector<float> values = tensor.floats();
      if (std::any_of(values.begin(), values.end(), [](float each) { return each != 0; }))
        ++compared;
    }
    return RankResult{};
  });
  EXPECT_EQ(compared, 2 * 4);  // no gradient is zero
}

TEST(Overlap, a_rank_that_fails_in_a_bucket_ends_the_others) {
  for (const std::string kind : {"cpu", "webgpu"}) {
    SCOPED_TRACE(kind);
    const auto errors =
        on_ranks(3,
                 [&](const Ranks& ranks) {
                   const bool fails = ranks->rank() == 1;
                   CompileOptions options = classifier_options(
                       std::make_shared<Watched>(ranks, [=](std::size_t call, std::size_t) {
                         if (fails && call == 4) throw UserError("the network is down");
                       }));
                   options.device = device_of(kind);
                   auto trainer = classifier(options);
                   trainer.run(6);
                 },
                 {.timeout_seconds = 60, .bucket_bytes = 1});
    EXPECT_THAT(errors, ElementsAre(HasSubstr("rank 1 has ended"), HasSubstr("the network is down"),
                                    HasSubstr("rank 1 has ended")));
  }
}

TEST(Overlap, an_engine_with_only_the_required_functions_trains_alike) {
  for (const std::string kind : {"cpu", "webgpu"}) {
    const auto train = training_on(kind, 1);
    const std::vector<RankResult> whole = in_buckets(kDefaultBucketBytes, train);
    EXPECT_THAT(
        in_buckets(1, [&](const Ranks& ranks) { return train(std::make_shared<Minimal>(ranks)); }),
        Each(whole[0]));
  }
}

TEST(Overlap, ranks_on_different_devices_agree_on_their_buckets) {
  std::atomic<std::size_t> calls = 0;
  const std::vector<RankResult> results = in_buckets(1, [&](const Ranks& ranks) {
    const bool first = ranks->rank() == 0;
    CompileOptions options = classifier_options(
        std::make_shared<Watched>(ranks, [&calls](std::size_t, std::size_t) { ++calls; }));
    options.device = device_of(first ? "cpu" : "webgpu");
    auto trainer = classifier(options);
    return RankResult{trainer.run(3), {}};
  });
  EXPECT_EQ(results[0].losses, results[1].losses);
  // Their buckets are equal, or they exchange all gradients at once.
  EXPECT_GT(calls, 0);
  EXPECT_EQ(calls % 6, 0);
}

TEST(Overlap, refuses_different_and_empty_buckets) {
  const auto errors = on_ranks(2, [&](const Ranks& ranks) {
    struct Other final : Watched {
      using Watched::Watched;
      [[nodiscard]] std::int64_t bucket_bytes() const override { return 1000 + rank(); }
    };
    classifier(classifier_options(std::make_shared<Other>(ranks, [](std::size_t, std::size_t) {})));
  });
  EXPECT_THAT(errors, Each(HasSubstr("of rank 1 differs from that of rank 0")));
  try {
    make_thread_group(2, {.bucket_bytes = 0});
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(), "make_thread_group: bucket_bytes: expected at least 1, got 0");
  }
}

TEST(Overlap, staging_memory_is_reported) {
  for (const std::string kind : {"cpu", "webgpu"}) {
    in_buckets(2000, [&](const Ranks& ranks) {
      CompileOptions options = classifier_options(ranks);
      options.device = device_of(kind);
      const auto trainer = classifier(options);
      if (kind == "cpu") {
        EXPECT_EQ(trainer.report().exchange_bytes, 0);  // added in place
      } else {
        EXPECT_GE(trainer.report().exchange_bytes, 8 * kGradients);
      }
      EXPECT_THAT(trainer.explain(), HasSubstr("\nexchange  "));
      return RankResult{};
    });
  }
  EXPECT_EQ(classifier(classifier_options(nullptr)).report().exchange_bytes, 0);
}

TEST(ThreadGroup, long_sums_apart_from_their_operands_have_the_bits_of_short_ones) {
  constexpr std::size_t kCount = 3'000'001;
  std::vector<std::vector<float>> sums(3), operands(3);
  EXPECT_THAT(on_ranks(3,
                       [&](const Ranks& ranks) {
                         const auto rank = static_cast<std::size_t>(ranks->rank());
                         const std::vector<float> mine = uniform_numbers(
                             static_cast<std::int64_t>(kCount), static_cast<std::uint32_t>(rank));
                         sums[rank].resize(kCount);
                         ranks->all_reduce_sum_into(mine, sums[rank]);
                         operands[rank] = mine;
                       }),
              Each(IsEmpty()));
  for (std::size_t i = 0; i < kCount; ++i)
    ASSERT_EQ(sums[0][i], operands[0][i] + operands[1][i] + operands[2][i]) << i;
  EXPECT_EQ(sums[1], sums[0]);
  EXPECT_EQ(sums[2], sums[0]);
}

}  // namespace
}  // namespace tensorgrad::testing
