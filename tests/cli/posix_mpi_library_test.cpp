// SPDX-License-Identifier: MIT
// How tg uses libtg_mpi.so, on a library whose second rank is a twin of the first one.
#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "classify/classifier.h"
#include "run/ranks.h"

namespace tensorgrad::cli {
namespace {

using ::testing::ElementsAre;

struct ObservedSum {
  const float* mine = nullptr;
  const float* sum = nullptr;
  std::size_t count = 0;
};

std::mutex observed_mutex;
std::vector<ObservedSum> observed;  // since the last take_observed()

std::vector<ObservedSum> take_observed() {
  const std::lock_guard lock(observed_mutex);
  return std::exchange(observed, {});
}

// Joins the twin. The library is found by its name, since it is loaded already.
std::shared_ptr<Communicator> join_twin() {
  void* const library = ::dlopen(TENSORGRAD_TWIN_MPI, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw UserError(::dlerror());
  using Watch = void (*)(const float*, const float*, std::size_t);
  const auto watch_sums = reinterpret_cast<void (*)(Watch)>(::dlsym(library, "twin_watch_sums"));
  if (watch_sums == nullptr) throw UserError(::dlerror());
  watch_sums([](const float* mine, const float* sum, std::size_t count) {
    const std::lock_guard lock(observed_mutex);
    observed.push_back({mine, sum, count});
  });
  return join_mpi({.mode = "mpi"});
}

Run table_run() {
  Run run;
  run.settings.batch = 8;
  run.settings.epochs = 2;
  run.settings.hidden = {16, 8};
  run.task.kind = Task::Kind::kTable;
  run.task.feature_names.resize(25);
  run.task.class_names.resize(3);
  run.task.train_count = 16;
  return run;
}

// Returns the sums of a training step on a device.
std::vector<ObservedSum> sums_of_step(const DeviceOptions& device) {
  const Ranks ranks(join_twin());
  const Run run = table_run();
  NetTrainer trainer = compile_training(run, device, ranks);
  Samples samples;
  samples.count = run.task.train_count;
  samples.features.assign(static_cast<std::size_t>(samples.count * run.task.features()), 0.5F);
  samples.labels.assign(static_cast<std::size_t>(samples.count), 1);
  upload(trainer, run.task, samples);
  trainer.step();
  take_observed();
  trainer.step();
  std::vector<ObservedSum> sums = take_observed();
  // The mean of the loss over the ranks is summed, too.
  std::erase_if(sums, [](const ObservedSum& each) { return each.count == 1; });
  return sums;
}

// Expects that all gradients are exchanged, in several buckets.
void expect_buckets(const std::vector<ObservedSum>& sums) {
  EXPECT_GT(sums.size(), 2U);
  std::size_t elements = 0;
  for (const ObservedSum& each : sums) elements += each.count;
  const auto parameters = static_cast<std::size_t>(parameter_count(table_run()));
  EXPECT_GE(elements, parameters);  // with the gaps between parameters
  EXPECT_LE(elements, parameters + std::size_t{6} * 64);
}

TEST(MpiLibrary, sums_into_the_memory_that_is_given) {
  const auto ranks = join_twin();
  ASSERT_EQ(ranks->size(), 2);
  EXPECT_EQ(ranks->bucket_bytes(), 1);
  take_observed();
  const std::vector<float> mine = {1, 2, 3};
  std::vector<float> sum(3);
  ranks->all_reduce_sum_into(mine, sum);
  EXPECT_THAT(sum, ElementsAre(2, 4, 6));
  ranks->all_reduce_sum(sum);
  EXPECT_THAT(sum, ElementsAre(4, 8, 12));
  const std::vector<ObservedSum> sums = take_observed();
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].mine, mine.data());
  EXPECT_EQ(sums[0].sum, sum.data());
  EXPECT_EQ(sums[1].mine, sum.data());
  EXPECT_EQ(sums[1].sum, sum.data());
}

TEST(MpiLibrary, exchanges_buckets_in_place_on_the_cpu) {
  const std::vector<ObservedSum> sums = sums_of_step({.kind = "cpu", .threads = 1});
  expect_buckets(sums);
  for (const ObservedSum& each : sums) EXPECT_EQ(each.mine, each.sum);
}

TEST(MpiLibrary, exchanges_buckets_without_copies_on_webgpu) {
  const std::vector<ObservedSum> sums = sums_of_step({.kind = "webgpu", .allow_software = true});
  expect_buckets(sums);
  for (const ObservedSum& each : sums) EXPECT_NE(each.mine, each.sum);
}

}  // namespace
}  // namespace tensorgrad::cli
