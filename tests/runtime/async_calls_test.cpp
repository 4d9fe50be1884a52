// SPDX-License-Identifier: MIT
// Asynchronous calls of trainers and functions (docs/training.md, Asynchronous calls).
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/shared.h"
#include "support/manual_executor.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::HasSubstr;

struct Small {
  nn::Linear first{3, 8}, second{8, 2};
  TG_MODULE(first, second)
};

Tensor small_loss(const Small& net, const Inputs& in) {
  return mse(net.second(tanh(net.first(in["x"]))), in["y"]);
}

DeviceOptions device_of_kind(const char* kind) {
  return {.kind = kind, .threads = 1, .allow_software = true};
}

CompileOptions options_of_inputs(DeviceOptions device) {
  return {.inputs = {{"x", {4, 3}}, {"y", {4, 2}}},
          .optimizer = optim::Adam{.lr = 0.01},
          .device = std::move(device)};
}

CompileOptions options_of_data(DeviceOptions device, Schedule lr = 0.01) {
  return {.dataset = {{"x", {22, 3}}, {"y", {22, 2}}},
          .batch = 4,
          .optimizer = optim::SGD{.lr = std::move(lr)},
          .device = std::move(device)};
}

void expect_the_steps_of_step(const char* kind) {
  auto queued = compile(Small{}, small_loss, options_of_inputs(device_of_kind(kind)));
  auto waited = compile(Small{}, small_loss, options_of_inputs(device_of_kind(kind)));
  std::vector<Future<StepResult>> results;
  for (unsigned i = 0; i < 3; ++i) {
    std::vector<float> x = numbers(12, i), y = numbers(8, 10 + i);
    results.push_back(queued.step_async({{"x", x}, {"y", y}}));
    x.assign(12, 1e9F);  // the call has a copy
  }
  Future<void> slower = queued.async([&] { queued.set_lr(0.5); });
  results.push_back(queued.step_async({{"x", numbers(12, 3)}, {"y", numbers(8, 13)}}));
  Future<NamedTensors> params = queued.download_params_async();
  Future<NamedTensors> optimizer = queued.download_optimizer_async();
  Future<NamedTensors> grads = queued.download_grads_async();
  for (unsigned i = 0; i < 4; ++i) {
    if (i == 3) waited.set_lr(0.5);
    const StepResult expected = waited.step({{"x", numbers(12, i)}, {"y", numbers(8, 10 + i)}});
    const StepResult result = results[i].get();
    EXPECT_EQ(result.loss, expected.loss) << i;
    EXPECT_EQ(result.step, expected.step);
  }
  slower.get();
  EXPECT_EQ(bits_of(params.get()), bits_of(waited.download_params()));
  EXPECT_EQ(bits_of(optimizer.get()), bits_of(waited.download_optimizer()));
  EXPECT_EQ(bits_of(grads.get()), bits_of(waited.download_grads()));
}
TEST(AsyncCalls, run_in_order_on_cpu) { expect_the_steps_of_step("cpu"); }
TEST(AsyncCalls, run_in_order_on_webgpu) { expect_the_steps_of_step("webgpu"); }

// Runs the trainer and its function alternately, on two threads.
TEST(AsyncCalls, of_attached_functions_keep_their_order) {
  const auto predict = [](const Small& net, const Inputs& in) { return net.first(in["x"]); };
  const FunctionOptions options = {.inputs = {{"x", {1, 3}}}};
  const std::vector<float> x = numbers(3, 5);
  auto queued = compile(Small{}, small_loss, options_of_data(device_of_kind("cpu")));
  auto waited = compile(Small{}, small_loss, options_of_data(device_of_kind("cpu")));
  give_data(queued);
  give_data(waited);
  CompiledFunction queued_predict = queued.attach(predict, options);
  CompiledFunction waited_predict = waited.attach(predict, options);
  ThreadExecutor other;
  std::vector<Future<HostTensor>> predictions;
  for (int i = 0; i < 5; ++i) {
    static_cast<void>(queued.run_async(3));
    predictions.push_back(queued_predict.call_async({{"x", x}}, &other));
  }
  for (Future<HostTensor>& each : predictions) {
    waited.run(3);
    EXPECT_EQ(each.get().bytes, waited_predict({{"x", x}}).bytes);
  }
  EXPECT_EQ(queued_predict.run_async({{"x", x}}).get().at("output").bytes,
            waited_predict({{"x", x}}).bytes);
  EXPECT_EQ(bits_of(queued_predict.download_params_async().get()),
            bits_of(waited.download_params()));
}

TEST(AsyncCalls, device_tensors_are_kept_alive) {
  auto encode =
      compile_function(Small{}, [](const Small&, const Inputs& in) { return in["x"] * 2.0; },
                       {.inputs = {{"x", {4}}}, .device = device_of_kind("cpu")});
  test::ManualExecutor loop;
  Future<HostTensor> doubled = [&] {
    const NamedDeviceTensors held = encode.run_on_device({{"x", std::vector<float>{1, 2, 3, 4}}});
    return encode.call_async({{"x", held.at("output")}}, &loop);
  }();
  EXPECT_EQ(doubled.get().floats(), (std::vector<float>{4, 8, 12, 16}));
}

TEST(AsyncCalls, errors_are_rethrown_by_the_future_with_the_line) {
  auto trainer = compile(Small{}, small_loss, options_of_inputs(device_of_kind("cpu")));
  const std::vector<float> x = numbers(12, 1), y = numbers(8, 2);
  const int line = __LINE__ + 1;
  Future<StepResult> wrong = trainer.step_async({{"x", x}, {"z", y}});
  Future<StepResult> fine = trainer.step_async({{"x", x}, {"y", y}});
  try {
    wrong.get();
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'z'"));
    EXPECT_THAT(error.what(), HasSubstr("async_calls_test.cpp:" + std::to_string(line)));
  }
  EXPECT_EQ(fine.get().step, 1);
  EXPECT_THROW(trainer.run_async(-1).get(), UserError);
  EXPECT_THROW(trainer.download_ema_async().get(), UserError);
}

void expect_queued_calls_are_cancelled(const char* kind) {
  auto trainer = compile(Small{}, small_loss, options_of_data(device_of_kind(kind)));
  give_data(trainer);
  test::ManualExecutor loop;
  Future<std::vector<float>> first = trainer.run_async(2, &loop);
  Future<NamedTensors> params = trainer.download_params_async(&loop);
  trainer.abort();
  Future<std::vector<float>> later = trainer.run_async(3, &loop);
  EXPECT_EQ(later.get().size(), 3U);
  EXPECT_THROW(first.get(), AbortedError);
  EXPECT_THROW(params.get(), AbortedError);
  EXPECT_EQ(trainer.steps(), 3);
}
TEST(AsyncCalls, abort_cancels_those_that_have_not_begun_on_cpu) {
  expect_queued_calls_are_cancelled("cpu");
}
TEST(AsyncCalls, abort_cancels_those_that_have_not_begun_on_webgpu) {
  expect_queued_calls_are_cancelled("webgpu");
}

void expect_a_run_is_ended(const char* kind) {
  constexpr int kEndless = 100'000'000;
  auto trainer = compile(Small{}, small_loss, options_of_data(device_of_kind(kind)));
  give_data(trainer);
  std::atomic<bool> begun = false;
  Future<std::vector<float>> endless = trainer.async([&] {
    begun = true;
    return trainer.run(kEndless);
  });
  Future<std::vector<float>> behind = trainer.run_async(kEndless);
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  trainer.abort();
  EXPECT_THROW(endless.get(), AbortedError);
  EXPECT_THROW(behind.get(), AbortedError);
  const auto kept = static_cast<std::int64_t>(trainer.losses().size());
  EXPECT_LE(kept, trainer.steps());
  EXPECT_GE(kept, std::min<std::int64_t>(trainer.steps(), 4096));
  EXPECT_EQ(trainer.run_async(1).get().size(), 1U);
}
TEST(AsyncCalls, abort_ends_one_that_has_begun_on_cpu) { expect_a_run_is_ended("cpu"); }
TEST(AsyncCalls, abort_ends_one_that_has_begun_on_webgpu) { expect_a_run_is_ended("webgpu"); }

// Aborts between the moment a call leaves the queue and the moment it starts.
TEST(AsyncCalls, abort_is_never_missed) {
  auto trainer = compile(Small{}, small_loss, options_of_data(device_of_kind("cpu")));
  give_data(trainer);
  Future<std::vector<float>> run = trainer.async([&] {
    trainer.abort();
    return trainer.run(3);
  });
  EXPECT_THROW(run.get(), AbortedError);
  EXPECT_EQ(trainer.steps(), 0);
}

Future<float> train_small(Trainer<Small>& trainer, int runs) {
  float last = 0;
  for (int i = 0; i < runs; ++i) last = (co_await trainer.run_async(4)).back();
  co_return last;
}

void expect_two_share_a_device(const char* kind) {
  auto first = compile(Small{}, small_loss, options_of_data(device_of_kind(kind)));
  auto second = compile(Small{}, small_loss, options_of_data(first.same_device(), 0.1));
  give_data(first);
  give_data(second);
  Future<float> one = train_small(first, 5), two = train_small(second, 5);
  auto waited = compile(Small{}, small_loss, options_of_data(device_of_kind(kind)));
  auto faster = compile(Small{}, small_loss, options_of_data(device_of_kind(kind), 0.1));
  give_data(waited);
  give_data(faster);
  EXPECT_EQ(one.get(), waited.run(20).back());
  EXPECT_EQ(two.get(), faster.run(20).back());
}
TEST(AsyncCalls, of_two_trainers_share_a_device_on_cpu) { expect_two_share_a_device("cpu"); }
TEST(AsyncCalls, of_two_trainers_share_a_device_on_webgpu) { expect_two_share_a_device("webgpu"); }

TEST(AsyncCalls, run_on_an_executor_of_the_program) {
  test::ManualExecutor loop;
  auto trainer = compile(Small{}, small_loss, options_of_data(device_of_kind("cpu")));
  give_data(trainer);
  const auto here = std::this_thread::get_id();
  std::thread::id ran;
  Future<std::vector<float>> losses = trainer.run_async(2, &loop);
  Future<void> after = trainer.async([&] { ran = std::this_thread::get_id(); }, &loop);
  EXPECT_EQ(trainer.steps(), 0);
  int frames = 0;
  while (!after.ready()) {
    loop.run_one();
    ++frames;
  }
  EXPECT_EQ(frames, 2);
  EXPECT_EQ(trainer.steps(), 2);
  EXPECT_EQ(losses.get().size(), 2U);
  EXPECT_EQ(ran, here);
}

// The second call is posted to the loop only after the first has ended on its thread.
TEST(AsyncCalls, keep_their_order_over_executors) {
  test::ManualExecutor loop;
  auto trainer = compile(Small{}, small_loss, options_of_data(device_of_kind("cpu")));
  give_data(trainer);
  static_cast<void>(
      trainer.async([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }));
  static_cast<void>(trainer.run_async(7));
  std::int64_t steps = 0;
  trainer.async([&] { steps = trainer.steps(); }, &loop).get();
  EXPECT_EQ(steps, 7);
}

// A coroutine resumes on the thread that its next call needs.
TEST(AsyncCalls, can_be_waited_for_on_their_own_thread) {
  auto trainer = compile(Small{}, small_loss, options_of_data(device_of_kind("cpu")));
  give_data(trainer);
  const auto body = [&]() -> Future<std::size_t> {
    co_await trainer.run_async(1);
    co_return trainer.run_async(2).get().size() + trainer.run(3).size();
  };
  EXPECT_EQ(body().get(), 5U);
}

TEST(AsyncCalls, destroying_the_trainer_cancels_them) {
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> alive = held;
  std::optional<Trainer<Small>> trainer = compile(
      Small{},
      [held = std::move(held)](const Small& net, const Inputs& in) { return small_loss(net, in); },
      options_of_data(device_of_kind("cpu")));
  give_data(*trainer);
  trainer->async([] {}).get();  // starts its thread
  Future<std::vector<float>> endless = trainer->run_async(100'000'000);
  Future<NamedTensors> behind = trainer->download_params_async();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(alive.expired());
  trainer.reset();
  EXPECT_TRUE(alive.expired());  // so the run has ended
  EXPECT_THROW(endless.get(), AbortedError);
  EXPECT_THROW(behind.get(), AbortedError);
}

TEST(AsyncCalls, other_copies_keep_the_trainer) {
  test::ManualExecutor loop;
  std::optional<Trainer<Small>> trainer =
      compile(Small{}, small_loss, options_of_data(device_of_kind("cpu")));
  give_data(*trainer);
  AnyTrainer copy = *trainer;  // NOLINT(cppcoreguidelines-slicing): a handle without the model
  Future<std::vector<float>> run = trainer->run_async(2, &loop);
  trainer.reset();
  EXPECT_EQ(run.get().size(), 2U);
}

// The coroutine ends on the trainer's thread and destroys the trainer.
TEST(AsyncCalls, a_coroutine_can_own_the_trainer) {
  const auto body = []() -> Future<float> {
    // GCC 12 destroys a braced temporary twice if the expression contains co_await.
    Future<Trainer<Small>> compiled =
        compile_async(Small{}, small_loss, options_of_inputs(device_of_kind("cpu")));
    auto trainer = co_await compiled;
    Future<StepResult> step = trainer.step_async({{"x", numbers(12, 1)}, {"y", numbers(8, 2)}});
    co_return (co_await step).loss;
  };
  auto trainer = compile(Small{}, small_loss, options_of_inputs(device_of_kind("cpu")));
  const float expected = trainer.step({{"x", numbers(12, 1)}, {"y", numbers(8, 2)}}).loss;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(body().get(), expected);
}

TEST(AsyncCalls, compile_async_compiles) {
  CompileOptions options = options_of_inputs(device_of_kind("cpu"));
  Future<MultiTrainer<Small>> several =
      compile_async(Small{},
                    {{.name = "only",
                      .loss = small_loss,
                      .options = {.inputs = options.inputs, .optimizer = optim::SGD{}}}},
                    {.device = device_of_kind("cpu")});
  Future<CompiledFunction> function =
      compile_function_async(Small{}, [](const Small&, const Inputs& in) { return in["x"] + 1.0; },
                             {.inputs = {{"x", {2}}}, .device = device_of_kind("cpu")});
  EXPECT_EQ(several.get().objectives(), std::vector<std::string>{"only"});
  EXPECT_EQ(function.get().call_async({{"x", std::vector<float>{1, 2}}}).get().floats(),
            (std::vector<float>{2, 3}));
  options.optimizer = {};
  const int line = __LINE__ + 1;
  Future<Trainer<Small>> wrong = compile_async(Small{}, small_loss, options);
  try {
    wrong.get();
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("async_calls_test.cpp:" + std::to_string(line)));
  }
}

}  // namespace
}  // namespace tensorgrad::testing
