// SPDX-License-Identifier: MIT
// Mistakes with data loaders.
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {
namespace {

const HostTensor kValue = HostTensor::from({1}, std::vector<float>(1));

}  // namespace

TEST(DataLoaderErrors, batch_larger_than_dataset) {
  EXPECT_ERROR(DataLoader(3, no_fields, {.batch = 4}), UserError,
               "data loader: a batch of 4 is larger than the 3 samples");
}

TEST(DataLoaderErrors, field_missing) {
  const auto sample = [](std::int64_t i) -> NamedTensors {
    if (i == 0) return {{"x", kValue}, {"y", kValue}};
    return {{"x", kValue}};
  };
  DataLoader loader(2, sample, {.batch = 2, .shuffle = false});
  EXPECT_ERROR(loader.next(), UserError,
               "data loader: sample 1 has no field 'y', unlike other samples in the batch");
}

TEST(DataLoaderErrors, field_unknown) {
  const auto sample = [](std::int64_t i) -> NamedTensors {
    if (i == 1) return {{"x", kValue}, {"y", kValue}};
    return {{"x", kValue}};
  };
  DataLoader loader(2, sample, {.batch = 2, .shuffle = false});
  EXPECT_ERROR(loader.next(), UserError,
               "data loader: sample 1 has a field 'y', unlike other samples in the batch");
}

TEST(DataLoaderErrors, sample_shapes_differ) {
  const auto sample = [](std::int64_t i) -> NamedTensors {
    const std::vector<float> values(static_cast<std::size_t>(i) + 1);
    return {{"x", HostTensor::from({i + 1}, values)}};
  };
  DataLoader loader(2, sample, {.batch = 2, .shuffle = false});
  EXPECT_ERROR(
      loader.next(), ShapeError,
      "data loader: sample 1: field 'x' is f32[2], other samples in the batch have f32[1]");
}

TEST(DataLoaderErrors, sample_types_differ) {
  const auto sample = [](std::int64_t i) -> NamedTensors {
    if (i == 0) return {{"x", HostTensor::from({1}, std::vector<float>(1))}};
    return {{"x", HostTensor::from({1}, std::vector<std::int32_t>(1))}};
  };
  DataLoader loader(2, sample, {.batch = 2, .shuffle = false});
  EXPECT_ERROR(loader.next(), DtypeError,
               "data loader: sample 1: field 'x' is i32[1], other samples in the batch have f32");
}

TEST(DataLoaderErrors, sample_function_throws) {
  const auto sample = [](std::int64_t i) -> NamedTensors {
    throw std::out_of_range("row " + std::to_string(i));
  };
  DataLoader loader(3, sample, {.shuffle = false});
  EXPECT_ERROR(loader.next(), UserError, "data loader: sample 0: row 0");
}

TEST(DataLoaderErrors, state_beyond_epoch) {
  DataLoader loader(6, no_fields, {.batch = 3});
  EXPECT_ERROR(loader.load_state({0, 2, 0}), UserError,
               "data loader: batch 2 of epoch 0 is out of range: an epoch has 2 batches");
}

TEST(DataLoaderErrors, moved_from) {
  DataLoader loader(3, no_fields, {});
  const DataLoader other = std::move(loader);
  EXPECT_EQ(other.size(), 3);
  // NOLINTNEXTLINE(bugprone-use-after-move): the mistake
  EXPECT_ERROR(loader.next(), UserError, "DataLoader: used after it was moved from");
}

TEST(DataLoaderErrors, name_repeated) {
  DataLoader one(3, no_fields), two(3, no_fields);
  Example example;
  example.trainer.add_loader("train", one);
  EXPECT_ERROR(example.trainer.add_loader("train", two), UserError,
               "add_loader: the trainer already has a loader 'train'");
}

TEST(DataLoaderErrors, destroyed_before_save) {
  Example example;
  example.trainer.add_loader("train", DataLoader(3, no_fields));
  EXPECT_ERROR(example.trainer.save(temporary("gone.safetensors")), UserError,
               "the data loader 'train' of this trainer no longer exists");
}

}  // namespace tensorgrad::testing
