// SPDX-License-Identifier: MIT
// Results that stay on the device: passed to functions and steps, kept by the user, without copies
// to the host.
#include <gmock/gmock.h>

#include "debug/wrapped_device.h"
#include "runtime/precision_models.h"
#include "runtime/shared.h"
#include "train/device_value.h"

namespace tensorgrad::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Counts allocations and transfers between host and device.
class CountingDevice final : public WrappedDevice {
 public:
  explicit CountingDevice(std::shared_ptr<Device> device) : WrappedDevice(std::move(device)) {}
  BufferHandle alloc(std::int64_t bytes, const std::string& label) override {
    ++allocations;
    return WrappedDevice::alloc(bytes, label);
  }
  void upload(BufferHandle buffer, std::int64_t offset, std::span<const std::byte> data) override {
    ++uploads;
    WrappedDevice::upload(buffer, offset, data);
  }
  Ticket download(BufferHandle buffer, std::int64_t offset, std::span<std::byte> out) override {
    ++downloads;
    return WrappedDevice::download(buffer, offset, out);
  }
  int allocations = 0, uploads = 0, downloads = 0;
};

struct Coder {
  nn::Linear code{6, 4};
  TG_MODULE(code)
};
Tensor encode(const Coder& net, const Inputs& in) { return tanh(net.code(in["x"])); }

struct Judge {
  nn::Linear out{4, 3};
  TG_MODULE(out)
};
Tensor judge(const Judge& net, const Inputs& in) { return net.out(in["code"]); }
Tensor judge_loss(const Judge& net, const Inputs& in) {
  return mse(capture("guess", judge(net, in)), in["y"]);
}

CompiledFunction encoder_on(const DeviceOptions& device) {
  return compile_function(Coder{}, encode, {.inputs = {{"x", {5, 6}}}, .device = device});
}

// Advances a state: rotates it, scales it by 0.5 and adds an input.
Tensor advance(const Coder& net, const Inputs& in) {
  return roll(in["state"], {1}, {0}) * 0.5 + in["drop"] + sum(net.code.weight) * 0.0;
}
CompiledFunction advance_on(const DeviceOptions& device) {
  return compile_function(Coder{}, advance,
                          {.inputs = {{"state", {64}}, {"drop", {64}}}, .device = device});
}

void expect_chain(const char* kind) {
  CompiledFunction encoder = encoder_on(device_of(kind));
  CompiledFunction judges = compile_function(
      Judge{}, judge, {.inputs = {{"code", {5, 4}}}, .device = encoder.same_device()});
  EXPECT_THAT(judges.device(), HasSubstr("shared with another program"));
  for (const unsigned seed : {1U, 2U, 3U}) {
    const std::vector<float> x = numbers(30, seed);
    const HostTensor code = encoder({{"x", x}});
    const DeviceTensor kept = encoder.run_on_device({{"x", x}}).at("output");
    EXPECT_EQ(kept.dtype(), f32);
    EXPECT_EQ(kept.shape(), (Shape{5, 4}));
    EXPECT_EQ(kept.download().bytes, code.bytes);
    EXPECT_EQ(judges({{"code", kept}}).bytes, judges({{"code", code}}).bytes);
    EXPECT_EQ(kept.download().bytes, code.bytes);  // not overwritten by the host's code
  }
}
TEST(DeviceTensor, is_passed_between_functions_on_cpu) { expect_chain("cpu"); }
TEST(DeviceTensor, is_passed_between_functions_on_webgpu) { expect_chain("webgpu"); }

void expect_feedback(const char* kind) {
  CompiledFunction onward = advance_on(device_of(kind)), usual = advance_on(device_of(kind));
  HostTensor want = HostTensor::from({64}, numbers(64, 1));
  std::vector<DeviceTensor> all;
  std::vector<HostTensor> wanted;
  for (unsigned call = 0; call < 12; ++call) {
    const std::vector<float> drop = numbers(64, call + 2);
    if (all.empty()) {
      all.push_back(onward.run_on_device({{"state", want}, {"drop", drop}}).at("output"));
    } else {
      all.push_back(onward.run_on_device({{"state", all.back()}, {"drop", drop}}).at("output"));
    }
    want = usual({{"state", want}, {"drop", drop}});
    wanted.push_back(want);
  }
  // All previous results are intact, even after runs that return host tensors.
  static_cast<void>(onward({{"state", numbers(64, 50)}, {"drop", numbers(64, 51)}}));
  for (std::size_t call = 0; call < all.size(); ++call)
    EXPECT_EQ(all[call].download().bytes, wanted[call].bytes) << "call " << call;
  // One tensor is passed for two inputs.
  EXPECT_EQ(onward({{"state", all[3]}, {"drop", all[3]}}).bytes,
            usual({{"state", wanted[3]}, {"drop", wanted[3]}}).bytes);
}
TEST(DeviceTensor, is_an_input_of_its_own_function_on_cpu) { expect_feedback("cpu"); }
TEST(DeviceTensor, is_an_input_of_its_own_function_on_webgpu) { expect_feedback("webgpu"); }

void expect_no_copies(const char* kind) {
  DeviceOptions options = device_of(kind);
  const auto inner = advance_on(options).same_device().opened;
  auto counting = std::make_shared<CountingDevice>(inner);
  options.opened = counting;
  CompiledFunction onward = advance_on(options);
  const std::vector<float> begin = numbers(64, 1);
  DeviceTensor state = onward.run_on_device({{"state", begin}, {"drop", begin}}).at("output");
  for (int warm = 0; warm < 3; ++warm)
    state = onward.run_on_device({{"state", state}, {"drop", state}}).at("output");
  counting->uploads = counting->downloads = counting->allocations = 0;
  std::set<BufferHandle> places;
  for (int call = 0; call < 20; ++call) {
    const NamedDeviceTensors out = onward.run_on_device({{"state", state}, {"drop", state}});
    state = out.at("output");
    places.insert(FeedValue(state).on_device->memory->handle());
  }
  EXPECT_EQ(counting->uploads, 0) << kind;
  EXPECT_EQ(counting->downloads, 0) << kind;
  EXPECT_EQ(counting->allocations, 0) << kind;  // a few buffers are reused
  EXPECT_LE(places.size(), 3U) << kind;
  static_cast<void>(state.download());
  EXPECT_EQ(counting->downloads, 1) << kind;
}
TEST(DeviceTensor, is_read_without_a_copy) { expect_no_copies("cpu"); }
TEST(DeviceTensor, is_read_without_a_copy_on_webgpu) { expect_no_copies("webgpu"); }

void expect_steps(const char* kind) {
  CompileOptions options;
  options.inputs = {{"code", {5, 4}}, {"y", {5, 3}}};
  options.optimizer = optim::Adam{.lr = 0.01};
  options.device = device_of(kind);
  auto usual = compile(Judge{}, judge_loss, options);
  auto onward = compile(Judge{}, judge_loss, options);
  CompiledFunction encoder = encoder_on(onward.same_device());
  const std::vector<float> y = numbers(15, 9);
  for (unsigned step = 0; step < 6; ++step) {
    const DeviceTensor code = encoder.run_on_device({{"x", numbers(30, step)}}).at("output");
    const HostTensor there = code.download();
    const StepOptions asked{.captures = step % 3 == 1 ? std::vector<std::string>{"guess"}
                                                      : std::vector<std::string>{}};
    const StepResult want = usual.step({{"code", there}, {"y", y}}, asked);
    const StepResult got = onward.step({{"code", code}, {"y", y}}, asked);
    EXPECT_EQ(got.loss, want.loss) << step;
    EXPECT_EQ(bits_of(got.captures), bits_of(want.captures));
    if (step % 2 == 1) {  // values from the host are written to another buffer
      usual.step({{"code", numbers(20, 77)}, {"y", y}});
      onward.step({{"code", numbers(20, 77)}, {"y", y}}, {.captures = {"guess"}});
      EXPECT_EQ(code.download().bytes, there.bytes);
      onward.reset();
      usual.reset();
    }
  }
  EXPECT_EQ(everything(onward), everything(usual));
}
TEST(DeviceTensor, is_an_input_of_a_step_on_cpu) { expect_steps("cpu"); }
TEST(DeviceTensor, is_an_input_of_a_step_on_webgpu) { expect_steps("webgpu"); }

void expect_long_life(const char* kind) {
  const auto twice = [](const Coder& net, const Inputs& in) {
    const Tensor x = capture("in", in["x"] + sum(net.code.weight) * 0.0);
    return std::map<std::string, Tensor>{{"double", x * 2.0}, {"half", cast(x * 0.5, f16)}};
  };
  std::vector<DeviceTensor> kept;
  {
    FunctionOptions options{
        .inputs = {{"x", {kDynamic}}}, .device = device_of(kind), .dynamic_size = 3};
    options.max_cached_sizes = 1;
    CompiledFunction forward = compile_function(Coder{}, twice, options);
    const std::vector<float> three = {1, 2, 3}, four = {4, 5, 6, 7}, five = {1, 1, 1, 1, 1};
    NamedDeviceTensors out = forward.run_on_device({{"x", three}});
    kept.push_back(out.at("double"));
    kept.push_back(out.at("half"));
    // Device inputs are unbound before a program with captures shares the memory.
    out = forward.run_on_device({{"x", kept[0]}});
    kept.push_back(out.at("double"));
    out = forward.run_on_device({{"x", three}}, {.captures = {"in"}});
    kept.push_back(out.at("in"));
    kept.push_back(forward.run_on_device({{"x", three}}, {.captures = {"in"}}).at("double"));
    kept.push_back(forward.run_on_device({{"x", four}}).at("double"));
    for (int call = 0; call < 3; ++call) {
      static_cast<void>(forward.run({{"x", five}}, {.captures = {"in"}}));
      static_cast<void>(forward.run({{"x", std::vector<float>{0, 0, 0}}}, {.captures = {"in"}}));
      static_cast<void>(forward.run({{"x", std::vector<float>{0, 0, 0}}}));
    }
  }
  EXPECT_THAT(kept[0].download().floats(), ElementsAre(2, 4, 6)) << kind;
  EXPECT_EQ(kept[1].dtype(), f16);
  EXPECT_THAT(kept[1].download().floats(), ElementsAre(0.5, 1, 1.5)) << kind;
  EXPECT_THAT(kept[2].download().floats(), ElementsAre(4, 8, 12)) << kind;
  EXPECT_THAT(kept[3].download().floats(), ElementsAre(1, 2, 3)) << kind;
  EXPECT_THAT(kept[4].download().floats(), ElementsAre(2, 4, 6)) << kind;
  EXPECT_THAT(kept[5].download().floats(), ElementsAre(8, 10, 12, 14)) << kind;
}
TEST(DeviceTensor, outlives_captures_sizes_and_its_function) { expect_long_life("cpu"); }
TEST(DeviceTensor, outlives_captures_sizes_and_its_function_on_webgpu) {
  expect_long_life("webgpu");
}

TEST(DeviceTensor, mismatched_tensor_is_rejected_before_running) {
  CompiledFunction encoder = encoder_on(device_of("cpu")), far = encoder_on(device_of("cpu"));
  CompiledFunction judges = compile_function(
      Judge{}, judge, {.inputs = {{"code", {5, 4}}}, .device = encoder.same_device()});
  CompiledFunction halves =
      compile_function(Judge{}, [](const Judge& net, const Inputs& in) { return judge(net, in); },
                       {.inputs = {{"code", {5, 4}, f16}}, .device = encoder.same_device()});
  const std::vector<float> x = numbers(30, 1);
  const DeviceTensor code = encoder.run_on_device({{"x", x}}).at("output");
  const auto message = [](CompiledFunction& of, const FeedView& feed) {
    return of.try_run(feed).error;
  };
  EXPECT_THAT(message(far, {{"x", code}}), HasSubstr("input 'x': the tensor is on another device"));
  EXPECT_THAT(message(encoder, {{"x", code}}),
              HasSubstr("input 'x': [5,6] has 30 elements, got 20"));
  EXPECT_THAT(message(halves, {{"code", code}}), HasSubstr("input 'code': expected f16, got f32"));
  EXPECT_TRUE(judges.try_run({{"code", code}}).completed());
}

}  // namespace
}  // namespace tensorgrad::testing
