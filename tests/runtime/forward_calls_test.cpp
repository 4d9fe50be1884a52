// SPDX-License-Identifier: MIT
// Calls of a function without training: errors as a status instead of an exception, and abort().
#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::HasSubstr;
using Status = RunOutcome::Status;

struct CallCounter {
  Buffer calls{{}};
  Parameter one{{1}, init::ones()};
  TG_MODULE(calls, one)
};

Tensor count_calls(const CallCounter& counter, const Inputs& in) {
  const Tensor next = counter.calls.tensor() + 1.0;
  counter.calls.set(next);
  return next + sum(in["x"]) * 0.0;
}

FunctionOptions counting_options(std::int64_t size = 1) {
  return {.inputs = {{"x", {size}}}, .device = {.kind = "cpu"}};
}

const std::vector<float> kOne = {1};

TEST(TryRun, reports_the_outcome) {
  CompiledFunction forward = compile_function(CallCounter{}, count_calls, counting_options());
  const RunOutcome good = forward.try_run({{"x", kOne}});
  EXPECT_TRUE(good.completed());
  EXPECT_EQ(good.outputs.at("output").floats(), kOne);
  EXPECT_EQ(good.error, "");
  const RunOutcome bad = forward.try_run();
  const int line = __LINE__ - 1;
  EXPECT_EQ(bad.status, Status::kFailed);
  EXPECT_TRUE(bad.outputs.empty());
  EXPECT_THAT(bad.error, HasSubstr("input 'x' is missing"));
  EXPECT_THAT(bad.error, HasSubstr("forward_calls_test.cpp:" + std::to_string(line)));
  EXPECT_EQ(forward.try_run({{"x", kOne}}, {.captures = {"none"}}).status, Status::kFailed);
  // A failed call runs nothing.
  EXPECT_EQ(forward.run({{"x", kOne}}).at("output").floats(), std::vector<float>{2});
}

TEST(AbortRun, ends_queued_calls) {
  CompiledFunction forward = compile_function(CallCounter{}, count_calls, counting_options());
  std::atomic<bool> stop = false;
  std::atomic<int> aborted = 0, completed = 0, failed = 0;
  std::vector<std::thread> callers;
  callers.reserve(3);
  for (int i = 0; i < 3; ++i) {  // one has the turn, the others wait
    callers.emplace_back([&] {
      while (!stop) {
        const Status status = forward.try_run({{"x", kOne}}).status;
        ++(status == Status::kAborted ? aborted : status == Status::kFailed ? failed : completed);
      }
    });
  }
  while (aborted < 2) forward.abort();
  stop = true;
  for (std::thread& each : callers) each.join();
  EXPECT_EQ(failed, 0);
  const auto calls = static_cast<float>(completed + 1);  // aborted calls ran nothing
  EXPECT_EQ(forward({{"x", kOne}}).floats(), std::vector<float>{calls});
}

TEST(AbortRun, ends_a_compiling_call_and_keeps_its_programs) {
  CompiledFunction* calls = nullptr;
  int traced = 0;
  const auto aborting = [&](const CallCounter& counter, const Inputs& in) {
    if (++traced == 2) calls->abort();  // as another thread would during the compilation
    return count_calls(counter, in);
  };
  CompiledFunction forward = compile_function(CallCounter{}, aborting, counting_options(kDynamic));
  calls = &forward;
  const std::vector<float> three(3);
  EXPECT_THROW(forward.run({{"x", three}}), AbortedError);
  EXPECT_EQ(traced, 2);
  const RunOutcome again = forward.try_run({{"x", three}});
  EXPECT_EQ(traced, 2);
  ASSERT_TRUE(again.completed()) << again.error;
  EXPECT_EQ(again.outputs.at("output").floats(), kOne);
}

TEST(AbortRun, does_not_affect_the_trainer) {
  CompiledFunction* calls = nullptr;
  TrainerBase* steps = nullptr;
  bool abort_calls = false, abort_steps = false;
  const auto capturing = [&](const CallCounter& counter, const Inputs& in) {
    if (abort_calls) calls->abort();
    if (abort_steps) steps->abort();
    return capture("seen", count_calls(counter, in));
  };
  const auto loss = [&](const CallCounter& counter, const Inputs& in) {
    if (abort_calls) calls->abort();
    return capture("square", sum(counter.one * counter.one * in["x"]));
  };
  CompileOptions options;
  options.inputs = {{"x", {1}}};
  options.optimizer = optim::SGD{};
  options.device = {.kind = "cpu"};
  auto trainer = compile(CallCounter{}, loss, options);
  CompiledFunction attached = trainer.attach(capturing, counting_options());
  steps = &trainer;
  calls = &attached;
  abort_steps = true;
  EXPECT_TRUE(attached.try_run({{"x", kOne}}, {.captures = {"seen"}}).completed());
  abort_steps = false;
  abort_calls = true;
  EXPECT_TRUE(trainer.try_step({{"x", kOne}}, {.captures = {"square"}}).completed());
  CompiledFunction other = trainer.attach(count_calls, counting_options());
  EXPECT_TRUE(other.try_run({{"x", kOne}}).completed());
  // Tracing it calls abort() on the first function.
  CompiledFunction second = trainer.attach(capturing, counting_options());
  calls = &second;
  EXPECT_EQ(second.try_run({{"x", kOne}}, {.captures = {"seen"}}).status, Status::kAborted);
}

TEST(SingleFlight, aborted_runs_are_results) {
  CompiledFunction* calls = nullptr;
  int traced = 0;
  const auto aborting = [&](const CallCounter& counter, const Inputs& in) {
    if (++traced > 1) calls->abort();
    return count_calls(counter, in);
  };
  CompiledFunction forward = compile_function(CallCounter{}, aborting, counting_options(kDynamic));
  calls = &forward;
  SingleFlight<RunOutcome(std::vector<float>)> flight(
      [&](const std::vector<float>& x) { return forward.try_run({{"x", x}}); });
  const std::vector<float> two(2);
  const auto first = flight(two).get(), second = flight(two).get();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->status, Status::kAborted);
  EXPECT_TRUE(second->completed()) << second->error;
}

}  // namespace
}  // namespace tensorgrad::testing
