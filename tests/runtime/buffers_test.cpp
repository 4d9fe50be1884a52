// SPDX-License-Identifier: MIT
// Values of a model's buffers, and files with only the weights of a model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Floats = std::vector<float>;

// Counts its steps in `steps`. The other buffers keep their initial values.
struct Scaled {
  nn::Linear fc{3, 2};
  Buffer scale = Buffer::from(HostTensor::from({3}, Floats{1, 10, 100}));
  Buffer order = Buffer::from(HostTensor::from({2}, std::vector<std::int32_t>{1, 0}));
  Buffer mask = Buffer::from(HostTensor::from({2}, std::vector<bool>{true, false}));
  Buffer steps{{}, 5};
  TG_MODULE(fc, scale, order, mask, steps)

  Tensor operator()(const Tensor& x) const {
    const Tensor y = index_select(fc(x * scale.tensor()), 1, order.tensor());
    return where(mask.tensor(), y, 0.0);
  }
};

Tensor scaled_loss(const Scaled& net, const Inputs& in) {
  if (is_training()) net.steps.set(net.steps.tensor() + 1);
  return mean(square(net(in["x"])));
}

CompileOptions scaled_options(const DeviceOptions& device = {.kind = "cpu"}) {
  return {.inputs = {{"x", {1, 3}}}, .optimizer = optim::Adam{.lr = 0.1}, .device = device};
}

const Feed kRow = {{"x", Floats{1, 2, 3}}};

void expect_initial_values(const char* device) {
  auto trainer =
      compile(Scaled{}, scaled_loss, scaled_options({.kind = device, .allow_software = true}));
  const auto first = trainer.download_buffers();
  EXPECT_THAT(first.at("scale").floats(), ElementsAre(1, 10, 100));
  EXPECT_THAT(first.at("order").ints(), ElementsAre(1, 0));
  EXPECT_THAT(first.at("mask").bools(), ElementsAre(true, false));
  EXPECT_THAT(first.at("steps").floats(), ElementsAre(5));
  const float loss = trainer.step(kRow).loss;
  EXPECT_THAT(trainer.download_buffers().at("steps").floats(), ElementsAre(6));
  trainer.upload_params({{"scale", HostTensor::from({3}, Floats{0, 0, 0})}}, {.partial = true});
  trainer.reset();
  EXPECT_EQ(trainer.step(kRow).loss, loss);
}
TEST(Buffers, start_with_the_values_of_the_model_and_reset_to_them_on_cpu) {
  expect_initial_values("cpu");
}
TEST(Buffers, start_with_the_values_of_the_model_and_reset_to_them_on_webgpu) {
  expect_initial_values("webgpu");
}

void expect_uploads(const char* device) {
  auto trainer =
      compile(Scaled{}, scaled_loss, scaled_options({.kind = device, .allow_software = true}));
  auto values = trainer.download_params();
  values.at("fc.bias") = HostTensor::from({2}, Floats{3, 4});
  values.emplace("scale", HostTensor::from({3}, Floats{0, 0, 0}));
  values.emplace("order", HostTensor::from({2}, std::vector<std::int32_t>{0, 1}));
  trainer.upload_params(values);
  auto predict = trainer.attach([](const Scaled& net, const Inputs& in) { return net(in["x"]); },
                                {.inputs = {{"x", {1, 3}}}});
  EXPECT_THAT(predict(kRow).floats(), ElementsAre(3, 0));
  EXPECT_THAT(predict.download_buffers().at("order").ints(), ElementsAre(0, 1));
}
TEST(Buffers, of_a_trainer_are_uploaded_with_parameters_on_cpu) { expect_uploads("cpu"); }
TEST(Buffers, of_a_trainer_are_uploaded_with_parameters_on_webgpu) { expect_uploads("webgpu"); }

void expect_values_of_a_function(const char* device) {
  auto predict = compile_function(
      Scaled{}, [](const Scaled& net, const Inputs& in) { return in["x"] * net.scale.tensor(); },
      {.inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = device, .allow_software = true}});
  EXPECT_THAT(predict(kRow).floats(), ElementsAre(1, 20, 300));
  EXPECT_THAT(predict({{"x", Floats(6, 1)}}).floats(), ElementsAre(1, 10, 100, 1, 10, 100));
}
TEST(Buffers, of_a_function_start_with_the_values_of_the_model_on_cpu) {
  expect_values_of_a_function("cpu");
}
TEST(Buffers, of_a_function_start_with_the_values_of_the_model_on_webgpu) {
  expect_values_of_a_function("webgpu");
}

TEST(BufferValues, mismatched_values_change_nothing) {
  auto trainer = compile(Scaled{}, scaled_loss, scaled_options());
  const Bits before = everything(trainer);
  const auto upload = [&](const char* name, HostTensor value) {
    try {
      trainer.upload_params({{name, std::move(value)}}, {.partial = true});
      return std::string("nothing was thrown");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(upload("scale", HostTensor::from({2}, Floats{1, 2})),
              HasSubstr("upload_params: buffer 'scale' is f32[3], got f32[2]"));
  EXPECT_THAT(upload("order", HostTensor::from({2}, Floats{1, 2})),
              HasSubstr("upload_params: buffer 'order' is i32[2], got f32[2]"));
  EXPECT_THAT(upload("scales", HostTensor::from({3}, Floats{1, 2, 3})), HasSubstr("'scales'"));
  EXPECT_EQ(everything(trainer), before);
}

TEST(BufferValues, are_shared_by_objectives) {
  const CompileOptions options = scaled_options({});
  auto trainer = compile(Scaled{},
                         std::vector<ObjectiveSpec<Scaled>>{
                             {.name = "a", .loss = scaled_loss, .params = {}, .options = options},
                             {.name = "b", .loss = scaled_loss, .params = {}, .options = options}},
                         {.device = {.kind = "cpu"}});
  trainer[{"a"}].step(kRow);
  trainer[{"b"}].step(kRow);
  EXPECT_THAT(trainer.download_buffers().at("steps").floats(), ElementsAre(7));
  EXPECT_THAT(trainer.download_buffers().at("scale").floats(), ElementsAre(1, 10, 100));
}

class WeightFiles : public ::testing::Test {
 protected:
  WeightFiles() : trained_(compile(Scaled{}, scaled_loss, options())) {
    for (int i = 0; i < 3; ++i) trained_.step(kRow);
    trained_.upload_params({{"scale", HostTensor::from({3}, Floats{1, 2, 3})}}, {.partial = true});
  }
  static CompileOptions options() {
    CompileOptions all = scaled_options();
    all.ema_decay = 0.5;
    return all;
  }
  // Returns the output of a function that loads the file.
  static Floats predicted(const std::vector<std::byte>& file, WeightSource weights) {
    auto predict =
        compile_function(Scaled{}, [](const Scaled& net, const Inputs& in) { return net(in["x"]); },
                         {.inputs = {{"x", {1, 3}}}, .device = {.kind = "cpu"}});
    predict.load_params(file, weights);
    return predict(kRow).floats();
  }
  std::vector<std::byte> weights(WeightSource which = WeightSource::kTrained) {
    std::vector<std::byte> bytes;
    trained_.save_weights(bytes, which);
    return bytes;
  }

  Trainer<Scaled> trained_;
};

TEST_F(WeightFiles, have_parameters_and_buffers_under_their_names) {
  const StoredFile file = read_safetensors(weights());
  std::map<std::string, std::string> types;
  for (const auto& [name, tensor] : file.tensors) types[name] = tensor.dtype;
  EXPECT_THAT(types, UnorderedElementsAre(Pair("fc.weight", "F32"), Pair("fc.bias", "F32"),
                                          Pair("scale", "F32"), Pair("order", "I32"),
                                          Pair("mask", "BOOL"), Pair("steps", "F32")));
  EXPECT_EQ(file.tensors.at("mask").data.size(), 2U);
}

TEST_F(WeightFiles, are_read_by_functions_as_checkpoints_are) {
  const Floats expected = predicted(trained_.save_bytes(), WeightSource::kTrained);
  EXPECT_EQ(predicted(weights(), WeightSource::kTrained), expected);
  const Floats average = predicted(trained_.save_bytes(), WeightSource::kEma);
  EXPECT_EQ(predicted(weights(WeightSource::kEma), WeightSource::kTrained), average);
  EXPECT_NE(average, expected);
}

TEST_F(WeightFiles, start_another_training) {
  for (const auto& file : {trained_.save_bytes(), weights()}) {
    auto options = scaled_options();
    options.optimizer = optim::SGD{.lr = 0.25};
    auto next = compile(Scaled{}, scaled_loss, options);
    next.load_params(file);
    EXPECT_EQ(next.steps(), 0);
    EXPECT_EQ(next.download_params().at("fc.weight").bytes,
              trained_.download_params().at("fc.weight").bytes);
    const auto buffers = next.download_buffers();
    EXPECT_THAT(buffers.at("scale").floats(), ElementsAre(1, 2, 3));
    EXPECT_THAT(buffers.at("mask").bools(), ElementsAre(true, false));
    EXPECT_THAT(buffers.at("steps").floats(), ElementsAre(8));
  }
}

// Transfer learning: loads a checkpoint as the backbone of a model with a new head.
struct Headed {
  Scaled backbone;
  nn::Linear head{2, 4};
  TG_MODULE(backbone, head)
};

TEST_F(WeightFiles, are_imported_into_a_part_of_another_model) {
  for (const auto& file : {trained_.save_bytes(), weights()}) {
    auto next = compile(
        Headed{},
        [](const Headed& net, const Inputs& in) {
          return mean(square(net.head(net.backbone(in["x"]))));
        },
        scaled_options());
    const auto head = next.download_params().at("head.weight").bytes;
    // The loss does not read `steps`, so no program of this trainer has it.
    next.import_weights(file, {.names = {{"*", "backbone.*"}}, .partial = true});
    EXPECT_EQ(next.download_params().at("backbone.fc.weight").bytes,
              trained_.download_params().at("fc.weight").bytes);
    EXPECT_EQ(next.download_params().at("head.weight").bytes, head);
    EXPECT_THAT(next.download_buffers().at("backbone.scale").floats(), ElementsAre(1, 2, 3));
  }
}

TEST_F(WeightFiles, of_another_model_change_nothing) {
  auto next = compile(
      Headed{},
      [](const Headed& net, const Inputs& in) {
        return mean(square(net.head(net.backbone(in["x"]))));
      },
      scaled_options());
  const Bits before = everything(next);
  for (const auto& file : {trained_.save_bytes(), weights()})
    EXPECT_THROW(next.load_params(file), UserError);
  EXPECT_THROW(next.load_params(trained_.save_bytes(), WeightSource::kEma), UserError);
  EXPECT_EQ(everything(next), before);
}

}  // namespace
}  // namespace tensorgrad::testing
