// SPDX-License-Identifier: MIT
// Training on several ranks, as the tests of threads and those of MPI run it.
#pragma once

#include <bit>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/models.h"
#include "support/small_mamba.h"
#include "tensorgrad/distributed/communicator.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {

// Runs `work` on the members of a thread group, each on a thread of its own. Returns the message of
// what each rank threw, empty for those that did not.
inline std::vector<std::string> on_ranks(
    int ranks, const std::function<void(std::shared_ptr<Communicator>)>& work,
    const ThreadGroupOptions& options = {.timeout_seconds = 60}) {
  std::vector<std::shared_ptr<Communicator>> members = make_thread_group(ranks, options);
  std::vector<std::string> errors(members.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < members.size(); ++i) {
    threads.emplace_back([&, i, member = std::move(members[i])]() mutable {
      try {
        work(std::move(member));
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline std::vector<float> uniform_numbers(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    values.push_back(static_cast<float>(seed >> 8) * 0x1p-23F - 1);
  }
  return values;
}

constexpr std::int64_t kRows = 75;        // of the data set of the classifier
constexpr std::int64_t kWholeBatch = 12;  // of all ranks together

// Returns options that train the classifier on a device-resident data set.
inline CompileOptions classifier_options(std::shared_ptr<Communicator> ranks) {
  const std::int64_t batch = kWholeBatch / (ranks == nullptr ? 1 : ranks->size());
  return {.dataset = {{"x", {kRows, 64}}, {"t", {kRows}, i32}},
          .batch = batch,
          .optimizer = optim::Adam{.lr = 1e-2},
          .clip_grad_norm = 0.5,
          .seed = 3,
          .device = {.kind = "cpu", .threads = 1},
          .distributed = std::move(ranks)};
}

inline Trainer<Mlp> classifier(const CompileOptions& options) {
  auto trainer = compile(Mlp(), mlp_loss, options);
  trainer.upload_data("x", uniform_numbers(kRows * 64, 1));
  std::vector<std::int32_t> targets;
  for (std::int32_t i = 0; i < kRows; ++i) targets.push_back(i * 7 % 10);
  trainer.upload_data("t", targets);
  return trainer;
}

// A model with a single number.
struct Scale {
  Parameter w{{1}, init::constant(1)};
  TG_MODULE(w)
};

// Results of a training: losses, and all parameters one after another.
struct RankResult {
  std::vector<float> losses, params;
  bool operator==(const RankResult&) const = default;

  [[nodiscard]] std::uint64_t hash() const {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const std::vector<float>* part : {&losses, &params}) {
      for (const float each : *part)
        hash = (hash ^ std::bit_cast<std::uint32_t>(each)) * 0x100000001b3U;
    }
    return hash;
  }
};

inline void append(const NamedTensors& tensors, std::vector<float>& to) {
  for (const auto& [name, tensor] : tensors) {
    const std::vector<float> values = tensor.floats();
    to.insert(to.end(), values.begin(), values.end());
  }
}

inline std::vector<float> all_params(const TrainerBase& trainer) {
  std::vector<float> all;
  append(trainer.download_params(), all);
  return all;
}

// Returns losses, and parameters followed by the states of the optimizer.
template <class M>
RankResult result_of(Trainer<M>& trainer, int steps) {
  RankResult result{trainer.run(steps), all_params(trainer)};
  append(trainer.download_optimizer(), result.params);
  return result;
}

// Trains for two epochs and a part of the third.
inline RankResult train_classifier(std::shared_ptr<Communicator> ranks) {
  auto trainer = classifier(classifier_options(std::move(ranks)));
  RankResult result;
  result.losses = trainer.run(10);
  for (int i = 0; i < 4; ++i) result.losses.push_back(trainer.step().loss);
  result.params = all_params(trainer);
  return result;
}

// Trains a language model with every kind of layer on random text, with accumulation.
inline RankResult train_language_model(std::shared_ptr<Communicator> ranks,
                                       bool shard_optimizer = false,
                                       bool shard_parameters = false) {
  constexpr std::int64_t kSymbols = 7;
  lm::TrainingOptions options = {.length = 8,
                                 .steps = 10,
                                 .accumulate = 2,
                                 .lr = 1e-2,
                                 .warmup = 2,
                                 .seed = 4,
                                 .device = {.kind = "cpu", .threads = 1}};
  options.batch = kWholeBatch / (ranks == nullptr ? 1 : ranks->size());
  options.distributed = std::move(ranks);
  options.shard_optimizer = shard_optimizer;
  options.shard_parameters = shard_parameters;
  lm::LanguageTrainer trainer(mixed_mamba(kSymbols, 16),
                              TokenSequence(random_tokens(400, kSymbols, 1)), TokenSequence(),
                              options);
  RankResult result;
  for (int i = 0; i < 6; ++i) result.losses.push_back(static_cast<float>(trainer.step()));
  result.params = all_params(trainer.trainer());
  return result;
}

// Exchanges sums, broadcasts and gathers of several sizes, also of more elements than are sent at
// once. Returns the hash of the results.
inline std::uint64_t exchanged_hash(const std::shared_ptr<Communicator>& ranks) {
  RankResult results;
  for (const std::size_t count : {0, 1, 2, 1000, (1 << 22) + 5}) {
    std::vector<float> values = uniform_numbers(static_cast<std::int64_t>(count),
                                                static_cast<std::uint32_t>(ranks->rank()));
    ranks->all_reduce_sum(values);
    results.losses.insert(results.losses.end(), values.begin(), values.end());
  }
  std::vector<float> mine(7, static_cast<float>(ranks->rank() + 1));
  results.params.resize(mine.size() * static_cast<std::size_t>(ranks->size()));
  ranks->all_gather(std::as_bytes(std::span(mine)),
                    std::as_writable_bytes(std::span(results.params)));
  ranks->broadcast(std::as_writable_bytes(std::span(mine)));
  results.params.insert(results.params.end(), mine.begin(), mine.end());
  ranks->barrier();
  return results.hash();
}

}  // namespace tensorgrad::testing
