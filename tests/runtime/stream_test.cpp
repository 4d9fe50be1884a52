// SPDX-License-Identifier: MIT
// Steps on batches from the host that are queued without waiting for their losses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "compile/runtime/instance.h"
#include "debug/wrapped_device.h"
#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::HasSubstr;

struct Streamed {
  nn::Linear hidden{3, 8}, out{8, 2};
  TG_MODULE(hidden, out)
  Tensor operator()(const Tensor& x) const { return out(dropout(tanh(hidden(x)), 0.2)); }
};

Tensor streamed_loss(const Streamed& net, const Inputs& in) { return mse(net(in["x"]), in["y"]); }

CompileOptions streamed_options(const std::string& kind, std::int64_t rows = 4) {
  return {.inputs = {{"x", {rows, 3}}, {"y", {rows, 2}}},
          .optimizer = optim::Adam{.lr = Schedule::cosine(0.05, 0.001, 30)},
          .accumulate = 2,
          .seed = 3,
          .device = {.kind = kind, .allow_software = true}};
}

struct StreamedBatch {
  std::vector<float> x, y;
  explicit StreamedBatch(unsigned seed, std::int64_t rows = 4)
      : x(numbers(rows * 3, seed)), y(numbers(rows * 2, seed + 100)) {}
  operator FeedView() const { return {{"x", x}, {"y", y}}; }  // NOLINT
};

// A device that counts the calls of run(), and claims to be busy.
class BusyDevice final : public WrappedDevice {
 public:
  BusyDevice() : WrappedDevice(open()) {}
  Ticket run(Executable& executable, std::span<const RuntimeScalars> rows) override {
    ++calls;
    return WrappedDevice::run(executable, rows);
  }
  bool done(Ticket) override { return false; }
  int calls = 0;

 private:
  static std::shared_ptr<Device> open() {
    std::string reason;
    return open_device({.kind = "webgpu", .allow_software = true}, reason);
  }
};

// Returns the losses of queued steps. Expects those of step() bit for bit, and the same state.
void expect_steps(Trainer<Streamed>& queued, Trainer<Streamed>& stepped,
                  const std::vector<StreamedBatch>& batches) {
  std::vector<float> want;
  for (const StreamedBatch& batch : batches) {
    queued.submit(batch);
    want.push_back(stepped.step(batch).loss);
  }
  EXPECT_EQ(queued.steps(), stepped.steps());
  EXPECT_EQ(queued.losses(), want);
  EXPECT_EQ(everything(queued), everything(stepped));
}

std::vector<StreamedBatch> batches_from(unsigned first, unsigned count) {
  std::vector<StreamedBatch> batches;
  for (unsigned i = 0; i < count; ++i) batches.emplace_back(first + i);
  return batches;
}

void queues_the_steps_of_step(const std::string& kind) {
  auto queued = compile(Streamed{}, streamed_loss, streamed_options(kind)),
       stepped = compile(Streamed{}, streamed_loss, streamed_options(kind));
  expect_steps(queued, stepped, batches_from(0, 40));
  EXPECT_EQ(queued.step(StreamedBatch(90)).loss, stepped.step(StreamedBatch(90)).loss);
  queued.set_lr(0.01);
  stepped.set_lr(0.01);
  expect_steps(queued, stepped, batches_from(50, 3));
}
TEST(Submit, of_inputs_matches_step_on_cpu) { queues_the_steps_of_step("cpu"); }
TEST(Submit, of_inputs_matches_step_on_webgpu) { queues_the_steps_of_step("webgpu"); }

TEST(Submit, of_inputs_gathers_steps_while_the_device_is_busy_on_webgpu) {
  CompileOptions options = streamed_options("webgpu");
  auto stepped = compile(Streamed{}, streamed_loss, options);
  const auto device = std::make_shared<BusyDevice>();
  options.device = {.opened = device};
  auto queued = compile(Streamed{}, streamed_loss, options);
  device->calls = 0;
  expect_steps(queued, stepped, batches_from(0, 40));
  EXPECT_EQ(device->calls, 3) << "16, 16 and 8 steps";
  queued.submit(StreamedBatch(70));
  queued.submit(StreamedBatch(71));
  EXPECT_EQ(device->calls, 3);
  EXPECT_EQ(queued.steps(), 42);
  // Any other call submits them first.
  stepped.step(StreamedBatch(70));
  stepped.step(StreamedBatch(71));
  EXPECT_EQ(queued.step(StreamedBatch(72)).loss, stepped.step(StreamedBatch(72)).loss);
  EXPECT_EQ(everything(queued), everything(stepped));
}

// A host tensor, a device tensor and a host tensor again, each in the place of the previous one.
TEST(Submit, of_inputs_takes_device_tensors_between_host_values_on_webgpu) {
  CompileOptions options = streamed_options("webgpu");
  auto stepped = compile(Streamed{}, streamed_loss, options);
  options.device = {.opened = std::make_shared<BusyDevice>()};
  auto queued = compile(Streamed{}, streamed_loss, options);
  auto twice = queued.attach([](const Streamed&, const Inputs& in) { return in["a"] * 2.0; },
                             {.inputs = {{"a", {4, 3}}}});
  std::vector<float> want;
  for (unsigned i = 0; i < 9; ++i) {
    StreamedBatch batch(i);
    if (i % 3 == 1) {
      const DeviceTensor x = twice.run_on_device({{"a", batch.x}}).at("output");
      for (float& value : batch.x) value *= 2;
      queued.submit({{"x", x}, {"y", batch.y}});
    } else {
      queued.submit(batch);
    }
    want.push_back(stepped.step(batch).loss);
  }
  EXPECT_EQ(queued.losses(), want);
  EXPECT_EQ(everything(queued), everything(stepped));
}

// Steps whose scalars, data or program depend on the step before are submitted one by one.
void expect_queued(CompileOptions options, const std::vector<StreamedBatch>& batches,
                   bool with_data = false) {
  auto stepped = compile(Streamed{}, streamed_loss, options);
  options.device = {.opened = std::make_shared<BusyDevice>()};
  auto queued = compile(Streamed{}, streamed_loss, options);
  if (with_data) {
    const auto y = numbers(22 * 2, 2);
    queued.upload_data("y", y);
    stepped.upload_data("y", y);
  }
  std::vector<float> want;
  for (const StreamedBatch& batch : batches) {
    FeedView feed = {{"x", batch.x}};
    if (!with_data) feed.add("y", batch.y);
    queued.submit(feed);
    want.push_back(stepped.step(feed).loss);
  }
  EXPECT_EQ(queued.losses(), want);
  EXPECT_EQ(everything(queued), everything(stepped));
}

TEST(Submit, of_inputs_with_a_loss_scale_matches_step_on_webgpu) {
  CompileOptions options = streamed_options("webgpu");
  options.loss_scale = LossScale{.growth_interval = 2};
  expect_queued(options, batches_from(0, 7));
}

TEST(Submit, of_inputs_beside_a_dataset_matches_step_on_webgpu) {
  CompileOptions options = streamed_options("webgpu");
  options.inputs.pop_back();
  options.dataset = {{"y", {22, 2}}};
  options.batch = 4;  // five batches an epoch
  expect_queued(options, batches_from(0, 13), true);
}

TEST(Submit, of_inputs_of_several_sizes_matches_step_on_webgpu) {
  std::vector<StreamedBatch> batches;
  for (const std::int64_t rows : {2, 4, 4, 2, 6})
    batches.emplace_back(static_cast<unsigned>(rows), rows);
  CompileOptions options = streamed_options("webgpu", kDynamic);
  options.dynamic_size = 4;
  expect_queued(options, batches);
}

TEST(Submit, of_inputs_of_two_objectives_keeps_their_order_on_webgpu) {
  const auto opposite = [](const Streamed& net, const Inputs& in) {
    return mean(square(net(in["x"]) + in["y"]));
  };
  const auto made = [&](const DeviceOptions& device) {
    CompileOptions own = streamed_options("");
    own.seed = 0;
    own.device = {};
    TrainerOptions common;
    common.device = device;
    return compile(Streamed{}, {{"a", streamed_loss, {}, own}, {"b", opposite, {}, own}}, common);
  };
  auto stepped = made({.kind = "webgpu", .allow_software = true});
  auto queued = made({.opened = std::make_shared<BusyDevice>()});
  for (unsigned i = 0; i < 8; ++i) {
    const char* name = i % 3 == 1 ? "b" : "a";
    queued[name].submit(StreamedBatch(i));
    stepped[name].step(StreamedBatch(i));
  }
  EXPECT_EQ(everything(queued), everything(stepped));
}

TEST(Submit, of_inputs_is_seen_by_a_function_that_outlives_the_trainer_on_webgpu) {
  const auto predicted = [](bool queues) {
    CompileOptions options = streamed_options("webgpu");
    options.device = {.opened = std::make_shared<BusyDevice>()};
    std::optional<CompiledFunction> predict;
    {
      auto trainer = compile(Streamed{}, streamed_loss, options);
      predict = trainer.attach([](const Streamed& net, const Inputs& in) { return net(in["x"]); },
                               {.inputs = {{"x", {1, 3}}}});
      for (unsigned i = 0; i < 4; ++i) {
        if (queues) {
          trainer.submit(StreamedBatch(i));
        } else {
          trainer.step(StreamedBatch(i));
        }
      }
    }
    return (*predict)({{"x", numbers(3, 1)}}).floats();
  };
  EXPECT_EQ(predicted(true), predicted(false));
}

void wrong_inputs_change_nothing(const std::string& kind) {
  auto queued = compile(Streamed{}, streamed_loss, streamed_options(kind)),
       stepped = compile(Streamed{}, streamed_loss, streamed_options(kind));
  queued.submit(StreamedBatch(1));
  stepped.step(StreamedBatch(1));
  const StreamedBatch batch(2);
  EXPECT_THROW(queued.submit({{"x", batch.x}}), UserError);
  EXPECT_THROW(queued.submit({{"x", batch.x}, {"y", batch.x}}), ShapeError);
  EXPECT_EQ(queued.losses().size(), 1U);
  expect_steps(queued, stepped, batches_from(3, 4));
}
TEST(Submit, of_wrong_inputs_changes_nothing_on_cpu) { wrong_inputs_change_nothing("cpu"); }
TEST(Submit, of_wrong_inputs_changes_nothing_on_webgpu) { wrong_inputs_change_nothing("webgpu"); }

TEST(Submit, of_inputs_with_detect_nan_is_rejected) {
  CompileOptions options = streamed_options("cpu");
  options.detect_nan = true;
  auto trainer = compile(Streamed{}, streamed_loss, options);
  EXPECT_THAT(
      [&] { trainer.submit(StreamedBatch(1)); },
      ::testing::ThrowsMessage<UserError>(HasSubstr("submit: not supported with detect_nan")));
}

}  // namespace
}  // namespace tensorgrad::testing
