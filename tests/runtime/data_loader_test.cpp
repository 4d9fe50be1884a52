// SPDX-License-Identifier: MIT
// The data loader: order, epochs, errors, destruction while workers run, and its position in a
// trainer's checkpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

// Returns a sample that holds its index and the epoch.
NamedTensors numbered(std::int64_t index, std::int64_t epoch) {
  return {{"i", HostTensor::from({}, std::vector{static_cast<std::int32_t>(index)})},
          {"x", HostTensor::from(
                    {2}, std::vector{static_cast<float>(index) / 2, static_cast<float>(epoch)})}};
}

std::vector<std::int32_t> indices(DataLoader& loader, std::int64_t batches) {
  std::vector<std::int32_t> all;
  for (std::int64_t b = 0; b < batches; ++b) {
    const std::vector<std::int32_t> some = loader.next().fields.at("i").ints();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TEST(DataLoader, stacks_samples_and_counts_batches_and_epochs) {
  DataLoader loader(5, numbered, {.batch = 2, .shuffle = false, .drop_last = false});
  EXPECT_EQ(loader.batches_per_epoch(), 3);
  std::vector<std::int64_t> sizes;
  for (int b = 0; b < 6; ++b) {
    const Batch batch = loader.next();
    const int epoch = b / 3;
    EXPECT_EQ(batch.epoch, epoch);
    EXPECT_EQ(batch.position, b % 3);
    EXPECT_EQ(batch.fields.at("x").shape, (Shape{batch.samples, 2}));
    EXPECT_EQ(batch.fields.at("i").shape, (Shape{batch.samples}));
    EXPECT_EQ(batch.fields.at("i").ints()[0], 2 * (b % 3));
    EXPECT_EQ(batch.fields.at("x").floats()[0], static_cast<float>(b % 3));
    EXPECT_EQ(batch.fields.at("x").floats()[1], static_cast<float>(epoch));
    sizes.push_back(batch.samples);
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{2, 2, 1, 2, 2, 1}));
}

TEST(DataLoader, draws_each_sample_once_an_epoch_in_an_order_of_its_own) {
  DataLoader loader(100, numbered, {.batch = 10, .seed = 4});
  std::vector<std::int32_t> first = indices(loader, 10), second = indices(loader, 10);
  EXPECT_NE(first, second);
  for (auto* epoch : {&first, &second}) {
    std::sort(epoch->begin(), epoch->end());
    std::vector<std::int32_t> all(100);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(*epoch, all);
  }
}

TEST(DataLoader, batches_do_not_depend_on_the_number_of_threads) {
  const auto drawn = [](int workers, int prefetch, std::uint32_t seed) {
    DataLoader loader(23,
                      [](std::int64_t index, std::int64_t epoch) {
                        // Disturbs the order of the threads.
                        if (index % 5 == 0) std::this_thread::yield();
                        return numbered(index, epoch);
                      },
                      {.batch = 4, .workers = workers, .prefetch = prefetch, .seed = seed});
    return indices(loader, 40);
  };
  const std::vector<std::int32_t> alone = drawn(0, 1, 9);
  for (const int workers : {1, 2, 5}) {
    for (const int prefetch : {1, 3, 8}) EXPECT_EQ(drawn(workers, prefetch, 9), alone);
  }
  EXPECT_NE(drawn(2, 2, 10), alone);
}

TEST(DataLoader, loads_ten_thousand_small_batches) {
  DataLoader loader(64, numbered, {.batch = 4, .workers = 3, .prefetch = 4});
  std::int64_t sum = 0;
  for (int b = 0; b < 10'000; ++b) {
    for (const std::int32_t index : loader.next().fields.at("i").ints()) sum += index;
  }
  EXPECT_EQ(sum, 10'000 / 16 * (63 * 64 / 2));
  EXPECT_EQ(loader.state(), (LoaderState{625, 0, 0}));
}

TEST(DataLoader, resumes_from_a_state) {
  for (const int workers : {0, 2}) {
    const LoaderOptions options{.batch = 3, .workers = workers, .seed = 6};
    DataLoader loader(10, numbered, options);
    indices(loader, 5);
    const LoaderState place = loader.state();
    EXPECT_EQ(place, (LoaderState{1, 2, 6}));
    const std::vector<std::int32_t> rest = indices(loader, 7);
    LoaderOptions other = options;
    other.seed = 1;  // the state has its own seed
    DataLoader resumed(10, numbered, other);
    indices(resumed, 1);
    resumed.load_state(place);
    EXPECT_EQ(indices(resumed, 7), rest);
    loader.load_state(place);
    EXPECT_EQ(indices(loader, 7), rest);
  }
}

TEST(DataLoader, rethrows_errors_of_the_function_and_stays_in_place) {
  for (const int workers : {0, 3}) {
    std::atomic<bool> broken = true;
    DataLoader loader(8,
                      [&](std::int64_t index) {
                        if (index == 5 && broken) throw std::runtime_error("no such picture");
                        return numbered(index, 0);
                      },
                      {.batch = 2, .shuffle = false, .workers = workers, .prefetch = 4});
    EXPECT_EQ(indices(loader, 2), (std::vector<std::int32_t>{0, 1, 2, 3}));
    for (int time = 0; time < 2; ++time) {
      try {
        loader.next();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const UserError& error) {
        EXPECT_EQ(error.message(), "data loader: sample 5: no such picture");
      }
    }
    EXPECT_EQ(loader.state().position, 2);
    broken = false;
    loader.load_state(loader.state());  // a prefetching worker may have failed again
    EXPECT_EQ(indices(loader, 2), (std::vector<std::int32_t>{4, 5, 6, 7}));
  }
}

TEST(DataLoader, keeps_the_type_of_tensorgrad_errors) {
  DataLoader loader(2, [](std::int64_t) -> NamedTensors { throw IoError("a.png: is empty"); });
  try {
    loader.next();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_EQ(error.message(), "a.png: is empty");
    EXPECT_NE(std::string(error.what()).find("while loading sample "), std::string::npos);
  }
}

TEST(DataLoader, ends_while_threads_are_at_work) {
  std::atomic<std::int64_t> calls = 0;
  for (int time = 0; time < 30; ++time) {
    DataLoader loader(1000,
                      [&](std::int64_t index) {
                        ++calls;
                        return numbered(index, 0);
                      },
                      {.batch = 100, .workers = 4, .prefetch = 8});
    for (int b = 0; b < time % 3; ++b) loader.next();
    const DataLoader moved = std::move(loader);
  }
  const std::int64_t at_the_end = calls;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(calls, at_the_end);
}

TEST(DataLoader, invalid_options_are_rejected) {
  EXPECT_THROW(DataLoader(0, numbered), UserError);
  EXPECT_THROW(DataLoader(std::int64_t{1} << 31, numbered), UserError);
  EXPECT_THROW(DataLoader(3, numbered, {.batch = 4}), UserError);
  EXPECT_THROW(DataLoader(3, numbered, {.batch = 0}), UserError);
  EXPECT_THROW(DataLoader(3, numbered, {.workers = -1}), UserError);
  EXPECT_THROW(DataLoader(3, numbered, {.workers = 257}), UserError);
  EXPECT_THROW(DataLoader(3, numbered, {.prefetch = 0}), UserError);
  DataLoader whole(3, numbered, {.batch = 4, .drop_last = false});
  EXPECT_EQ(whole.next().samples, 3);
  EXPECT_THROW(whole.load_state({0, 1, 0}), UserError);
  EXPECT_THROW(whole.load_state({-1, 0, 0}), UserError);
}

struct Net {
  nn::Linear fc{2, 3};
  TG_MODULE(fc)
};

Trainer<Net> make_trainer() {
  return compile(
      Net{},
      [](const Net& net, const Inputs& in) { return cross_entropy(net.fc(in["x"]), in["i"]); },
      {.inputs = {{"x", {4, 2}}, {"i", {4}, i32}},
       .optimizer = optim::Adam{.lr = 0.05},
       .device = {.kind = "cpu"}});
}

NamedTensors labelled(std::int64_t index) {
  NamedTensors sample = numbered(index, 0);
  sample["i"] = HostTensor::from({}, std::vector{static_cast<std::int32_t>(index % 3)});
  return sample;
}

TEST(DataLoader, resumes_with_a_trainer_bit_for_bit) {
  const std::string path = temporary("loader.safetensors");
  const LoaderOptions options{.batch = 4, .workers = 2, .seed = 3};
  std::vector<float> whole, parts;
  {
    DataLoader loader(18, labelled, options);
    auto trainer = make_trainer();
    trainer.add_loader("train", loader);
    for (int s = 0; s < 20; ++s) {
      if (s == 9) trainer.save(path);
      whole.push_back(trainer.step(loader.next()).loss);
    }
    trainer.reset();
    EXPECT_EQ(trainer.step(loader.next()).loss, whole[0]);
  }
  DataLoader loader(18, labelled, {.batch = 4, .workers = 0});
  auto trainer = make_trainer();
  trainer.add_loader("train", loader);
  trainer.load(path);
  EXPECT_EQ(loader.state(), (LoaderState{2, 1, 3}));
  for (int s = 9; s < 20; ++s) parts.push_back(trainer.step(loader.next()).loss);
  EXPECT_EQ(parts, std::vector<float>(whole.begin() + 9, whole.end()));
  std::filesystem::remove(path);
}

// A folder of IDX files, whose bytes identify the index of each sample.
TEST(DataLoader, loads_the_images_of_a_folder) {
  const std::string folder = temporary("_images");
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, std::vector<unsigned char> bytes, int count) {
    for (int i = 0; i < count; ++i) bytes.push_back(static_cast<unsigned char>(i * 7));
    write_file_atomically(folder + "/" + name, std::as_bytes(std::span(bytes)));
  };
  for (const std::string part : {"train", "test"}) {
    write(part + "-images-idx3-ubyte", {0, 0, 8, 3, 0, 0, 0, 6, 0, 0, 0, 2, 0, 0, 0, 2}, 24);
    write(part + "-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 6}, 6);
  }
  const LabeledImages data = read_image_folder(folder);
  std::filesystem::remove_all(folder);
  DataLoader loader(
      data.train.count,
      [&](std::int64_t index) -> NamedTensors {
        std::vector<float> pixels;
        for (std::int64_t i = 0; i < 4; ++i)
          pixels.push_back(data.train.images[static_cast<std::size_t>(index * 4 + i)] / 255.0F);
        return {
            {"image", HostTensor::from({1, 2, 2}, pixels)},
            {"label", HostTensor::from(
                          {}, std::vector{data.train.labels[static_cast<std::size_t>(index)]})}};
      },
      {.batch = 3, .workers = 2});
  for (int b = 0; b < 4; ++b) {
    const Batch batch = loader.next();
    const std::vector<float> images = batch.fields.at("image").floats();
    const std::vector<std::int32_t> labels = batch.fields.at("label").ints();
    ASSERT_EQ(batch.fields.at("image").shape, (Shape{3, 1, 2, 2}));
    // The label is 7 times the index, and a pixel 7 times its offset.
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(images[i * 4 + 1], static_cast<float>((4 * labels[i] + 7) % 256) / 255.0F);
  }
}

}  // namespace
}  // namespace tensorgrad::testing
