// SPDX-License-Identifier: MIT
// A trainer whose device is lost at any point. It opens the device again and continues bit for bit,
// or fails and can still save its snapshot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "runtime/losing_device.h"
#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::HasSubstr;

struct Losable {
  nn::Linear hidden{3, 4}, out{4, 2};
  Buffer seen{Shape{}};
  TG_MODULE(hidden, out, seen)
  Tensor operator()(const Tensor& x) const { return out(dropout(tanh(hidden(x)), 0.3)); }
};

Tensor losable_loss(const Losable& net, const Inputs& in) {
  net.seen.set(net.seen.tensor() + 1.0);
  return mse(capture("y", net(in["x"])), in["y"]);
}

std::vector<InputSpec> losable_inputs(std::int64_t rows) {
  return {{"x", {rows, 3}}, {"y", {rows, 2}}};
}

CompileOptions recovering(int snapshot_steps, const std::shared_ptr<Device>& device) {
  CompileOptions options;
  options.optimizer = optim::Adam{.lr = Schedule::cosine(0.05, 0.001, 20)};
  options.clip_grad_norm = 1;
  options.accumulate = 2;
  options.ema_decay = 0.9;
  options.loss_scale = LossScale{.growth_interval = 2};
  options.seed = 7;
  options.recovery = {.snapshot_steps = snapshot_steps, .wait_seconds = 0};
  options.device.opened = device;
  return options;
}

FeedView fed(const std::vector<float>& x, const std::vector<float>& y) {
  return {{"x", x}, {"y", y}};
}

// All results and state of a run.
struct LossOutcome {
  std::vector<float> numbers;
  Bits bits;
  std::vector<Recovery> recoveries;
  int opened = 0;  // number of devices opened
  bool operator==(const LossOutcome& other) const {
    return numbers == other.numbers && bits == other.bits;
  }
  void add(const std::vector<float>& more) {
    numbers.insert(numbers.end(), more.begin(), more.end());
  }
};

std::shared_ptr<LosingDevice> losing_device(int lose_before,
                                            std::shared_ptr<Losses>* seen = nullptr) {
  auto losses = std::make_shared<Losses>();
  losses->lose_before = lose_before;
  if (seen != nullptr) *seen = losses;
  return std::make_shared<LosingDevice>(losses);
}

// Queued and waited-for steps on a dataset, with scalars and schedules that change between them.
auto on_data(const std::shared_ptr<Losses>& losses, LossOutcome& outcome) {
  CompileOptions options = recovering(3, std::make_shared<LosingDevice>(losses));
  options.dataset = losable_inputs(22);
  options.batch = 5;
  auto trainer = compile(Losable{}, losable_loss, options);
  give_data(trainer);
  outcome.add(trainer.run(5));
  trainer.set("clip_grad_norm", 0.5);
  trainer.submit(4);
  trainer.set_lr(0.02);
  outcome.add({trainer.step().loss});
  outcome.add(trainer.losses());
  outcome.add({static_cast<float>(trainer.grad_norm()), static_cast<float>(trainer.loss_scale()),
               static_cast<float>(trainer.epoch()), static_cast<float>(trainer.steps())});
  for (const auto& [name, average] : trainer.download_ema()) outcome.add(average.floats());
  return trainer;
}

// Steps on inputs with captures, a function that reads the averages, and one that changes a state.
auto on_inputs(const std::shared_ptr<Losses>& losses, LossOutcome& outcome) {
  CompileOptions options = recovering(3, std::make_shared<LosingDevice>(losses));
  options.inputs = losable_inputs(4);
  auto trainer = compile(Losable{}, losable_loss, options);
  auto predict =
      trainer.attach([](const Losable& net, const Inputs& in) { return net(in["x"]); },
                     {.inputs = {{"x", {2, 3}}}, .weights = WeightSource::kEma, .training = true});
  auto count = trainer.attach(
      [](const Losable& net, const Inputs& in) {
        net.seen.set(net.seen.tensor() + sum(in["n"]));
        return net.seen.tensor() + 0.0;
      },
      {.inputs = {{"n", {2}}}});
  for (unsigned i = 0; i < 5; ++i) {
    const auto x = numbers(12, i), y = numbers(8, 50 + i);
    StepOptions step;
    if (i % 2 == 1) step.captures = {"y"};
    const StepResult result = trainer.step(fed(x, y), step);
    outcome.add({result.loss});
    for (const auto& [name, tensor] : result.captures) outcome.add(tensor.floats());
    outcome.add(predict({{"x", numbers(6, i)}}).floats());
    outcome.add(count({{"n", numbers(2, i)}}).floats());
  }
  for (const auto& [name, grad] : trainer.download_grads()) outcome.add(grad.floats());
  return trainer;
}

// Steps on inputs of several sizes, each with its own program.
auto on_sizes(const std::shared_ptr<Losses>& losses, LossOutcome& outcome) {
  CompileOptions options = recovering(3, std::make_shared<LosingDevice>(losses));
  options.inputs = losable_inputs(kDynamic);
  options.dynamic_size = 2;
  auto trainer = compile(Losable{}, losable_loss, options);
  unsigned seed = 0;
  for (const std::int64_t rows : {2, 4, 2, 4}) {
    const auto x = numbers(rows * 3, ++seed), y = numbers(rows * 2, seed + 50);
    outcome.add({trainer.step(fed(x, y)).loss});
  }
  for (const auto& [name, grad] : trainer.download_grads()) outcome.add(grad.floats());
  return trainer;
}

// Two objectives that alternate.
auto of_two_objectives(const std::shared_ptr<Losses>& losses, LossOutcome& outcome) {
  CompileOptions own;
  own.inputs = losable_inputs(4);
  own.optimizer = optim::SGD{.lr = 0.1, .momentum = 0.9};
  TrainerOptions common;
  common.device.opened = std::make_shared<LosingDevice>(losses);
  common.recovery = {.snapshot_steps = 3, .wait_seconds = 0};
  const auto opposite = [](const Losable& net, const Inputs& in) {
    return mean(square(net(in["x"]) + in["y"]));
  };
  auto trainer =
      compile(Losable{}, {{"a", losable_loss, {}, own}, {"b", opposite, ParamFilter("out.*"), own}},
              common);
  for (unsigned i = 0; i < 6; ++i) {
    const auto x = numbers(12, i), y = numbers(8, 50 + i);
    outcome.add({trainer[i % 3 == 2 ? "b" : "a"].step(fed(x, y)).loss});
  }
  for (const char* name : {"a", "b"}) {
    for (const auto& [each, grad] : trainer[name].download_grads()) outcome.add(grad.floats());
  }
  return trainer;
}

// Steps that are gathered on the host and submitted by a full group, a new size or another call.
auto of_gathered_steps(const std::shared_ptr<Losses>& losses, LossOutcome& outcome) {
  losses->busy = true;
  CompileOptions options = recovering(3, std::make_shared<LosingDevice>(losses));
  options.loss_scale.reset();  // it makes the scalars of a step depend on the one before
  options.inputs = losable_inputs(4);
  auto trainer = compile(Losable{}, losable_loss, options);
  auto predict = trainer.attach([](const Losable& net, const Inputs& in) { return net(in["x"]); },
                                {.inputs = {{"x", {2, 3}}}});
  unsigned seed = 0;
  for (const int together : {4, 2, 1, 5}) {
    for (int i = 0; i < together; ++i) {
      const auto x = numbers(12, ++seed), y = numbers(8, seed + 50);
      trainer.submit(fed(x, y));
    }
    outcome.add(predict({{"x", numbers(6, seed)}}).floats());
  }
  outcome.add(trainer.losses());
  outcome.add({static_cast<float>(trainer.steps())});
  return trainer;
}

// Runs `train`, which returns its trainer, on a device that is lost before a call, from the first
// buffer to the last download.
template <class Train>
LossOutcome observed(const Train& train, int lose_before, int& calls) {
  const auto losses = std::make_shared<Losses>();
  losses->lose_before = lose_before;
  LossOutcome outcome;
  {
    const auto trainer = train(losses, outcome);
    outcome.bits = everything(trainer);
    outcome.recoveries = trainer.recoveries();
  }
  calls = losses->calls;
  outcome.opened = losses->opened;
  return outcome;
}

// Loses the device before every `stride`-th call.
template <class Train>
void loses_nothing(const Train& train, int stride) {
  int calls = 0, unused = 0;
  std::size_t recoveries = 0;
  const LossOutcome want = observed(train, 0, calls);
  ASSERT_TRUE(want.recoveries.empty());
  ASSERT_GT(calls, 2 * stride);
  for (int at = 1; at <= calls; at += stride) {
    const LossOutcome got = observed(train, at, unused);
    ASSERT_TRUE(got == want) << "lost before call " << at << " of " << calls;
    recoveries += got.recoveries.size();
    EXPECT_EQ(got.opened, 2);
    for (const Recovery& recovery : got.recoveries)
      EXPECT_LE(recovery.repeated_steps, 3) << to_string(recovery);
  }
  EXPECT_GT(recoveries, 3U) << "it was lost after the trainer had been made";
}

TEST(DeviceLoss, changes_no_bit_of_steps_on_data_on_webgpu) { loses_nothing(on_data, 5); }
TEST(DeviceLoss, changes_no_bit_of_steps_on_inputs_and_functions_on_webgpu) {
  loses_nothing(on_inputs, 9);
}
TEST(DeviceLoss, changes_no_bit_of_steps_of_several_sizes_on_webgpu) { loses_nothing(on_sizes, 9); }
TEST(DeviceLoss, changes_no_bit_of_gathered_steps_on_webgpu) {
  loses_nothing(of_gathered_steps, 3);
}
TEST(DeviceLoss, changes_no_bit_of_two_objectives_on_webgpu) {
  loses_nothing(of_two_objectives, 6);
}

TEST(DeviceLoss, is_reported_with_the_repeated_steps_on_webgpu) {
  std::shared_ptr<Losses> losses;
  CompileOptions options = recovering(3, losing_device(0, &losses));
  options.inputs = losable_inputs(4);
  std::vector<std::string> told;
  options.recovery.on_recovery = [&](const Recovery& recovery) {
    told.push_back(to_string(recovery));
  };
  auto trainer = compile(Losable{}, losable_loss, options);
  const auto x = numbers(12, 1), y = numbers(8, 2);
  for (int i = 0; i < 5; ++i) trainer.step(fed(x, y));
  EXPECT_GT(trainer.report().snapshot_bytes, 0);
  losses->lose_before = losses->calls + 1;
  trainer.step(fed(x, y));
  ASSERT_EQ(trainer.recoveries().size(), 1U);
  const Recovery recovery = trainer.recoveries().front();
  EXPECT_EQ(recovery.snapshot_step, 3);
  EXPECT_EQ(recovery.repeated_steps, 2);
  EXPECT_THAT(told, ::testing::ElementsAre(HasSubstr("repeated 2 steps from step 3")));
  EXPECT_EQ(trainer.steps(), 6);
}

// If the device cannot be opened, the snapshot can be saved, and training continues once it is
// back.
TEST(DeviceLoss, without_a_new_device_still_saves_the_snapshot_on_webgpu) {
  std::shared_ptr<Losses> losses;
  CompileOptions options = recovering(3, losing_device(0, &losses));
  options.inputs = losable_inputs(4);
  auto trainer = compile(Losable{}, losable_loss, options),
       other = compile(Losable{}, losable_loss, options);
  const auto x = numbers(12, 1), y = numbers(8, 2);
  for (int i = 0; i < 5; ++i) trainer.step(fed(x, y));
  losses->lose_before = losses->calls + 1;
  losses->comes_back = false;
  const StepOutcome failed = trainer.try_step(fed(x, y));
  EXPECT_EQ(failed.status, StepOutcome::Status::kFailed);
  EXPECT_THAT(failed.error, HasSubstr("it has not come back: no adapter found; save() writes "
                                      "the snapshot of step 3"));
  EXPECT_THROW(trainer.step(fed(x, y)), DeviceLostError);
  EXPECT_THROW(static_cast<void>(trainer.download_params()), DeviceLostError);
  const std::string path = temporary("snapshot.safetensors");
  trainer.save(path);
  losses->comes_back = true;
  const float next = trainer.step(fed(x, y)).loss;  // step 6
  EXPECT_EQ(trainer.steps(), 6);
  other.load(path);
  std::filesystem::remove(path);
  EXPECT_EQ(other.steps(), 3);
  other.step(fed(x, y));
  other.step(fed(x, y));
  EXPECT_EQ(other.step(fed(x, y)).loss, next);
  EXPECT_EQ(everything(other), everything(trainer));
}

TEST(DeviceLoss, of_an_external_device_is_final_on_webgpu) {
  std::shared_ptr<Losses> losses;
  const auto device = losing_device(0, &losses);
  device->reopen = nullptr;
  CompileOptions options = recovering(2, device);
  options.inputs = losable_inputs(4);
  auto trainer = compile(Losable{}, losable_loss, options);
  const auto x = numbers(12, 1), y = numbers(8, 2);
  for (int i = 0; i < 3; ++i) trainer.step(fed(x, y));
  losses->lose_before = losses->calls + 1;
  EXPECT_THAT(trainer.try_step(fed(x, y)).error,
              HasSubstr("it belongs to the application and cannot be opened again; save() writes "
                        "the snapshot of step 2"));
  const std::string path = temporary("last.safetensors");
  trainer.save(path);
  EXPECT_GT(std::filesystem::file_size(path), 0U);
  std::filesystem::remove(path);
}

TEST(DeviceLoss, repeated_ends_the_call_on_webgpu) {
  std::shared_ptr<Losses> losses;
  CompileOptions options = recovering(2, losing_device(0, &losses));
  options.inputs = losable_inputs(4);
  auto trainer = compile(Losable{}, losable_loss, options);
  losses->lose_before = losses->calls + 1;
  losses->lose_all = true;
  const auto x = numbers(12, 1), y = numbers(8, 2);
  EXPECT_THROW(trainer.step(fed(x, y)), DeviceLostError);
  EXPECT_LE(losses->opened, 4);
}

TEST(DeviceLoss, without_snapshots_ends_the_run_on_webgpu) {
  std::shared_ptr<Losses> losses;
  CompileOptions options = recovering(0, losing_device(0, &losses));
  options.inputs = losable_inputs(4);
  auto trainer = compile(Losable{}, losable_loss, options);
  EXPECT_EQ(trainer.report().snapshot_bytes, 0);
  losses->lose_before = losses->calls + 1;
  const auto x = numbers(12, 1), y = numbers(8, 2);
  EXPECT_THROW(trainer.step(fed(x, y)), DeviceLostError);
  EXPECT_EQ(losses->opened, 1);
}

// Expects DeviceLostError at this line.
void expect_lost(const char* what, unsigned line, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << what << " succeeded";
  } catch (const DeviceLostError& error) {
    EXPECT_THAT(error.message(), HasSubstr("was lost")) << what;
    EXPECT_EQ(error.location().line, line) << what;
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": " << error.what();
  }
}
#define EXPECT_LOST(call) expect_lost(#call, __LINE__, [&] { static_cast<void>(call); })

TEST(DeviceLoss, is_thrown_by_every_later_call_with_its_line_on_webgpu) {
  std::shared_ptr<Losses> losses;
  CompileOptions options = recovering(0, losing_device(0, &losses));
  options.inputs = losable_inputs(4);
  auto trainer = compile(Losable{}, losable_loss, options);
  const auto x = numbers(12, 1), y = numbers(8, 2);
  const auto apply = [](const Losable& net, const Inputs& in) { return net(in["x"]); };
  const FunctionOptions rows{.inputs = {{"x", {4, 3}}}};
  auto predict = trainer.attach(apply, rows);
  const DeviceTensor result = predict.run_on_device({{"x", x}}).at("output");
  trainer.step(fed(x, y));
  const auto params = trainer.download_params(), states = trainer.download_optimizer();
  const std::vector<std::byte> checkpoint = trainer.save_bytes();
  std::vector<std::byte> file;

  losses->lose_before = losses->calls + 1;
  EXPECT_LOST(trainer.step(fed(x, y)));  // the one that notices it
  EXPECT_LOST(trainer.step(fed(x, y)));
  EXPECT_LOST(trainer.step_async(fed(x, y)).get());
  EXPECT_LOST(trainer.step_for(1, fed(x, y)));
  EXPECT_LOST((trainer.submit(fed(x, y)), trainer.losses()));
  EXPECT_LOST(trainer.grad_norm());
  EXPECT_LOST(trainer.download_grads());
  EXPECT_LOST(trainer.download_ema());
  EXPECT_LOST(trainer.download_params_async().get());
  EXPECT_LOST(trainer.upload_params(params));
  EXPECT_LOST(trainer.upload_optimizer(states));
  EXPECT_LOST(trainer.save(file));
  EXPECT_LOST(trainer.save_bytes());
  EXPECT_LOST(trainer.save_weights(file));
  EXPECT_LOST(trainer.load(checkpoint));
  EXPECT_LOST(trainer.load_params(checkpoint));
  EXPECT_LOST(trainer.profile(fed(x, y)));
  EXPECT_LOST(trainer.attach(apply, rows));
  EXPECT_LOST(predict({{"x", x}}));
  EXPECT_LOST(predict.run({{"x", x}}));
  EXPECT_LOST(predict.run_async({{"x", x}}).get());
  EXPECT_LOST(predict.run_on_device({{"x", x}}));
  EXPECT_LOST(predict.profile({{"x", x}}));
  EXPECT_LOST(predict.upload_params(params));
  EXPECT_LOST(predict.load_params(checkpoint));
  EXPECT_LOST(result.download());
  EXPECT_LOST(trainer.download_params());
  EXPECT_LOST(trainer.download_buffers());
  EXPECT_LOST(trainer.download_optimizer());
  EXPECT_LOST(trainer.reset());
  EXPECT_LOST(predict.download_params());
  EXPECT_THAT(trainer.try_step(fed(x, y)).error, HasSubstr("was lost"));
  EXPECT_THAT(predict.try_run({{"x", x}}).error, HasSubstr("was lost"));
  EXPECT_EQ(losses->opened, 1);
}

TEST(DeviceLoss, of_two_trainers_on_one_device_opens_it_once_on_webgpu) {
  std::shared_ptr<Losses> losses;
  CompileOptions options = recovering(2, losing_device(0, &losses));
  options.inputs = losable_inputs(4);
  auto one = compile(Losable{}, losable_loss, options),
       two = compile(Losable{}, losable_loss, options);
  const auto x = numbers(12, 1), y = numbers(8, 2);
  losses->lose_before = losses->calls + 1;
  EXPECT_EQ(one.step(fed(x, y)).loss, two.step(fed(x, y)).loss);
  EXPECT_EQ(losses->opened, 2);
  EXPECT_EQ(one.recoveries().size(), 1U);
  EXPECT_EQ(two.recoveries().size(), 1U);
  EXPECT_EQ(one.same_device().opened, two.same_device().opened);
}

TEST(DeviceLoss, requests_the_dataset_again_on_webgpu) {
  std::shared_ptr<Losses> losses;
  CompileOptions options = recovering(2, losing_device(0, &losses));
  options.dataset = losable_inputs(22);
  options.batch = 5;
  auto keeping = compile(Losable{}, losable_loss, options);
  give_data(keeping);
  std::vector<std::string> asked;
  options.recovery.dataset = [&](const std::string& entry) {
    asked.push_back(entry);
    return entry == "x" ? HostTensor::from({22, 3}, numbers(22 * 3, 1))
                        : HostTensor::from({22, 2}, numbers(22 * 2, 2));
  };
  auto asking = compile(Losable{}, losable_loss, options);
  give_data(asking);
  EXPECT_EQ(keeping.report().snapshot_bytes - asking.report().snapshot_bytes, 22 * 5 * 4);
  EXPECT_EQ(keeping.run(3), asking.run(3));
  losses->lose_before = losses->calls + 1;
  EXPECT_EQ(keeping.run(3), asking.run(3));
  EXPECT_THAT(asked, ::testing::UnorderedElementsAre("x", "y"));
}

TEST(DeviceLoss, options_out_of_range_are_rejected_on_webgpu) {
  CompileOptions options = recovering(-1, losing_device(0));
  options.inputs = losable_inputs(4);
  EXPECT_THROW(compile(Losable{}, losable_loss, options), UserError);
}

}  // namespace
}  // namespace tensorgrad::testing
