// SPDX-License-Identifier: MIT
// Compiled functions run on an application's own WebGPU device, and read and write its buffers.
#include <cmath>
#include <cstring>

#include <gmock/gmock.h>

#include "backend/webgpu/adapter.h"
#include "backend/webgpu/api.h"
#include "backend/webgpu/vendor.h"
#include "support/dump.h"
#include "support/message_of.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::HasSubstr;

constexpr WGPUBufferUsage kShared =
    WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;

// An application with its own device and buffers, as a game or a viewer has.
class Application {
 public:
  Application() {
    std::string reason;
    api_ = webgpu::load_api("", reason);
    if (api_ == nullptr) throw DeviceError(reason);
    adapters_ = webgpu::find_adapters(*api_, {});
    device_ = open();
    queue_ = webgpu::Handle(*api_, api_->DeviceGetQueue(device_.get()));
  }

  webgpu::Handle<WGPUDevice> open() {
    struct Answer {
      WGPUDevice device = nullptr;
      bool done = false;
    } answer;
    WGPUDeviceDescriptor descriptor = {};
    descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowProcessEvents;
    WGPURequestDeviceCallbackInfo callback = {};
    callback.mode = WGPUCallbackMode_AllowProcessEvents;
    callback.callback = [](WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView,
                           void* userdata,
                           void*) { *static_cast<Answer*>(userdata) = {device, true}; };
    callback.userdata1 = &answer;
    api_->AdapterRequestDevice(adapters_.at(0).handle.get(), &descriptor, callback);
    while (!answer.done) api_->InstanceProcessEvents(api_->instance);
    return {*api_, answer.device};
  }

  [[nodiscard]] DeviceOptions options() {
    return {.webgpu_library = api_->path,
            .external = {.instance = api_->instance,
                         .device = device_.get(),
                         .adapter = adapters_.at(0).handle.get(),
                         .lost = &lost}};
  }

  webgpu::Handle<WGPUBuffer> buffer(std::uint64_t bytes = 256, WGPUBufferUsage usage = kShared) {
    return buffer_of(device_.get(), bytes, usage);
  }
  webgpu::Handle<WGPUBuffer> buffer_of(WGPUDevice device, std::uint64_t bytes = 256,
                                       WGPUBufferUsage usage = kShared) {
    WGPUBufferDescriptor descriptor = {};
    descriptor.usage = usage;
    descriptor.size = bytes;
    return {*api_, api_->DeviceCreateBuffer(device, &descriptor)};
  }

  template <class T>
  void write(const webgpu::Handle<WGPUBuffer>& buffer, const std::vector<T>& values) {
    api_->QueueWriteBuffer(queue_.get(), buffer.get(), 0, values.data(), values.size() * sizeof(T));
  }

  std::vector<float> read(const webgpu::Handle<WGPUBuffer>& buffer, std::size_t count) {
    const std::size_t bytes = count * sizeof(float);
    const auto staging = this->buffer(bytes, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
    const webgpu::Handle encoder(*api_, api_->DeviceCreateCommandEncoder(device_.get(), nullptr));
    api_->CommandEncoderCopyBufferToBuffer(encoder.get(), buffer.get(), 0, staging.get(), 0, bytes);
    const webgpu::Handle commands(*api_, api_->CommandEncoderFinish(encoder.get(), nullptr));
    WGPUCommandBuffer submitted = commands.get();
    api_->vendor->submit(*api_, queue_.get(), {&submitted, 1});
    bool mapped = false;
    WGPUBufferMapCallbackInfo info = {};
    info.mode = WGPUCallbackMode_AllowProcessEvents;
    info.callback = [](WGPUMapAsyncStatus, WGPUStringView, void* userdata, void*) {
      *static_cast<bool*>(userdata) = true;
    };
    info.userdata1 = &mapped;
    api_->BufferMapAsync(staging.get(), WGPUMapMode_Read, 0, bytes, info);
    while (!mapped) api_->vendor->poll(*api_, device_.get());
    std::vector<float> values(count);
    std::memcpy(values.data(), api_->BufferGetConstMappedRange(staging.get(), 0, bytes), bytes);
    return values;
  }

  std::atomic<bool> lost{false};

 private:
  std::shared_ptr<const webgpu::Api> api_;
  std::vector<webgpu::Adapter> adapters_;
  webgpu::Handle<WGPUDevice> device_;
  webgpu::Handle<WGPUQueue> queue_;
};

struct SharedNet {
  nn::Linear layer{3, 2};
  TG_MODULE(layer)
};

std::map<std::string, Tensor> both(const SharedNet& net, const Inputs& in) {
  const Tensor y = net.layer(capture("input", in["x"] * 1.0));
  return {{"y", y}, {"z", relu(y) + in["shift"]}};
}

FunctionOptions forward_options(const DeviceOptions& device) {
  return {.inputs = {{"x", {4, 3}}, {"shift", {2}}}, .device = device};
}

const std::vector<float> kX = {1, -2, 3, 0.5F, 0, -1, 4, 4, -4, 0, 0, 0.25F};
const std::vector<float> kOther = {3, 1, 0, -0.5F, 2, 1, -4, 1, 1, 1, 7, 0.5F};
const std::vector<float> kShift = {10, 20};

TEST(ExternalDevice, reads_and_writes_buffers_of_the_application_on_webgpu) {
  Application app;
  const auto x = app.buffer(), other = app.buffer(), y = app.buffer(), z = app.buffer();
  CompiledFunction net = compile_function(SharedNet{}, both, forward_options(app.options()));
  EXPECT_THAT(net.device(), HasSubstr("provided by the application"));
  const NamedTensors expected = net.run({{"x", kX}, {"shift", kShift}});
  const NamedTensors of_other = net.run({{"x", kOther}, {"shift", kShift}});

  net.bind_input("x", x.get());
  net.bind_output("z", z.get());
  app.write(x, kX);
  NamedTensors out = net.run({{"shift", kShift}});
  EXPECT_EQ(out.size(), 1U);
  EXPECT_EQ(out.at("y").floats(), expected.at("y").floats());
  EXPECT_EQ(app.read(z, 8), expected.at("z").floats());

  net.bind_input("x", other.get());  // alternates between two buffers
  net.bind_output("y", y.get());
  app.write(other, kOther);
  EXPECT_TRUE(net.run({{"shift", kShift}}).empty());
  EXPECT_EQ(app.read(y, 8), of_other.at("y").floats());
  EXPECT_EQ(app.read(z, 8), of_other.at("z").floats());

  net.bind_input("x", nullptr);
  net.bind_output("z", nullptr);
  out = net.run({{"x", kX}, {"shift", kShift}});
  EXPECT_EQ(out.at("z").floats(), expected.at("z").floats());
  EXPECT_EQ(app.read(y, 8), expected.at("y").floats());
}

TEST(ExternalDevice, captures_come_from_bound_inputs_on_webgpu) {
  Application app;
  const auto x = app.buffer(), other = app.buffer();
  CompiledFunction net = compile_function(SharedNet{}, both, forward_options(app.options()));
  net.bind_input("x", x.get());
  app.write(x, kX);
  app.write(other, kOther);
  const StepOptions captured = {.captures = {"input"}};
  EXPECT_EQ(net.run({{"shift", kShift}}, captured).at("input").floats(), kX);
  net.bind_input("x", other.get());  // after the program with captures was compiled
  EXPECT_EQ(net.run({{"shift", kShift}}, captured).at("input").floats(), kOther);
}

TEST(ExternalDevice, outlives_its_functions_and_is_shared_on_webgpu) {
  Application app;
  const auto x = app.buffer(), between = app.buffer();
  app.write(x, kX);
  const auto scaled = [](double by) {
    return [by](const SharedNet&, const Inputs& in) { return in["x"] * by; };
  };
  const FunctionOptions options = {.inputs = {{"x", {4, 3}}}, .device = app.options()};
  std::vector<float> doubled(kX);
  for (float& value : doubled) value *= 2;
  {
    CompiledFunction first = compile_function(SharedNet{}, scaled(-1), options);
    CompiledFunction second = compile_function(SharedNet{}, scaled(-2), options);
    first.bind_input("x", x.get());
    first.bind_output("output", between.get());
    second.bind_input("x", between.get());
    EXPECT_TRUE(first.run().empty());
    EXPECT_EQ(second().floats(), doubled);
  }
  EXPECT_EQ(app.read(x, kX.size()), kX);
}

Tensor squares(const SharedNet& net, const Inputs& in) { return mse(net.layer(in["x"]), in["t"]); }

CompileOptions training(const DeviceOptions& device) {
  return {.inputs = {{"x", {4, 3}}, {"t", {4, 2}}},
          .optimizer = optim::SGD{.lr = 0.01},
          .device = device};
}

const std::vector<float> kTarget = {1, 2, 3, 4, 5, 6, 7, 8};

TEST(ExternalDevice, bound_inputs_match_passed_inputs_on_webgpu) {
  Application app;
  auto given = compile(SharedNet{}, squares, training(app.options()));
  std::vector<float> losses;
  for (int i = 0; i < 20; ++i) losses.push_back(given.step({{"x", kX}, {"t", kTarget}}).loss);

  auto bound = compile(SharedNet{}, squares, training(app.options()));
  const auto x = app.buffer(), t = app.buffer();
  app.write(x, kX);
  app.write(t, kTarget);
  bound.bind_input("x", x.get());
  EXPECT_THROW(bound.submit(1), UserError);  // "t" is still missing
  bound.bind_input("t", t.get());
  bound.submit(12);
  EXPECT_EQ(bound.step().loss, losses[12]);
  std::vector<float> rest = bound.run(7);
  EXPECT_EQ(rest, std::vector<float>(losses.begin() + 13, losses.end()));
  bound.bind_input("t", nullptr);
  EXPECT_THROW(bound.run(1), UserError);
}

TEST(ExternalDevice, data_of_two_objectives_are_one_buffer_on_webgpu) {
  Application app;
  const auto trainer_of = [&] {
    std::vector<ObjectiveSpec<SharedNet>> objectives;
    for (const double aim : {1.0, -1.0}) {
      objectives.push_back(
          {.name = aim > 0 ? "up" : "down",
           .loss = [aim](const SharedNet& net,
                         const Inputs& in) { return mean(square(net.layer(in["x"]) - aim)); },
           .options = {
               .dataset = {{"x", {4, 3}}}, .batch = 2, .optimizer = optim::SGD{.lr = 0.01}}});
    }
    return compile(SharedNet{}, objectives, {.seed = 3, .device = app.options()});
  };
  const auto losses_of = [](MultiTrainer<SharedNet>& trainer) {
    std::vector<float> losses = trainer["up"].run(5), more = trainer["down"].run(5);
    losses.insert(losses.end(), more.begin(), more.end());
    return losses;
  };
  auto given = trainer_of(), bound = trainer_of();
  given.upload_data("x", kX);
  const auto x = app.buffer();
  app.write(x, kX);
  bound.bind_data("x", x.get());
  const std::vector<float> losses = losses_of(given);
  EXPECT_EQ(losses_of(bound), losses);
  EXPECT_THAT(test::message_of<Error>([&] { bound.upload_data("x", kX); }),
              HasSubstr("upload_data: 'x' is bound to an application buffer"));
  EXPECT_THAT(test::message_of<Error>([&] { bound.bind_data("w", x.get()); }),
              HasSubstr("bind_data: unknown dataset entry 'w'; available: x"));
  bound.bind_data("x", nullptr);
  EXPECT_THAT(test::message_of<Error>([&] { bound["up"].run(1); }), HasSubstr("has no data"));
  bound.upload_data("x", kX);
  EXPECT_TRUE(std::isfinite(bound["down"].run(1)[0]));
}

TEST(ExternalDevice, nan_in_a_bound_input_is_found_on_webgpu) {
  Application app;
  CompileOptions options = training(app.options());
  options.detect_nan = true;
  auto trainer = compile(SharedNet{}, squares, options);
  const auto x = app.buffer();
  app.write(x, std::vector<float>(12, 1e30F));
  trainer.bind_input("x", x.get());
  try {
    trainer.step({{"t", kTarget}});
    ADD_FAILURE() << "infinity went by";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the first op to produce NaN or infinity is"));
  }
}

TEST(ExternalDevice, launches_on_bound_buffers_are_checked_on_webgpu) {
  Application app;
  const ScopedEnv env("TENSORGRAD_SHADOW", "1");
  CompiledFunction net = compile_function(SharedNet{}, both, forward_options(app.options()));
  const auto x = app.buffer(), y = app.buffer();
  app.write(x, kX);
  net.bind_input("x", x.get());
  net.bind_output("y", y.get());
  const NamedTensors out = net.run({{"shift", kShift}});
  std::vector<float> z = app.read(y, 8);
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = std::max(z[i], 0.0F) + kShift[i % 2];
  EXPECT_EQ(out.at("z").floats(), z);
}

TEST(ExternalDevice, wrong_buffers_are_rejected_without_effect_on_webgpu) {
  Application app;
  CompiledFunction net = compile_function(SharedNet{}, both, forward_options(app.options()));
  const auto good = app.buffer(), small = app.buffer(48);
  const auto no_storage = app.buffer(256, WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
  EXPECT_THAT(test::message_of<Error>([&] { net.bind_input("w", good.get()); }),
              HasSubstr("bind_input: unknown input 'w'; available: x, shift"));
  EXPECT_THAT(test::message_of<Error>([&] { net.bind_output("x", good.get()); }),
              HasSubstr("bind_output: unknown output 'x'; available: y, z"));
  EXPECT_THAT(test::message_of<Error>([&] { net.bind_input("x", small.get()); }),
              HasSubstr("bind_input: 'x': the buffer has 48 bytes, 256 are needed"));
  EXPECT_THAT(test::message_of<Error>([&] { net.bind_input("x", no_storage.get()); }),
              HasSubstr("bind_input: 'x': the usage of the buffer must include Storage and "
                        "CopySrc"));
  const auto stranger = app.open();
  const auto strange = app.buffer_of(stranger.get());
  EXPECT_THAT(test::message_of<Error>([&] { net.bind_input("x", strange.get()); }),
              HasSubstr("were rejected"));
  net.bind_output("y", good.get());
  EXPECT_THAT(test::message_of<Error>([&] { net.bind_output("z", good.get()); }),
              HasSubstr("bind_output: 'z': the buffer is already bound to \"output y\""));
  EXPECT_THAT(test::message_of<Error>([&] { net.bind_input("x", good.get()); }),
              HasSubstr("a written buffer can be bound only once"));
  const NamedTensors out = net.run({{"x", kX}, {"shift", kShift}});
  EXPECT_EQ(out.size(), 1U);

  const auto input = app.buffer();
  net.bind_input("x", input.get());
  EXPECT_THAT(test::message_of<Error>([&] { net.run({{"x", kX}, {"shift", kShift}}); }),
              HasSubstr("input 'x' is bound to an application buffer"));
  FunctionOptions open = forward_options(app.options());
  open.inputs[0].shape[0] = kDynamic;
  CompiledFunction sizes = compile_function(SharedNet{}, both, open);
  EXPECT_THAT(test::message_of<Error>([&] { sizes.bind_input("x", good.get()); }),
              HasSubstr("dynamic size"));
}

TEST(ExternalDevice, buffers_are_rejected_on_other_devices_on_webgpu) {
  Application app;
  const auto buffer = app.buffer();
  for (const char* kind : {"cpu", "null"}) {
    CompiledFunction net = compile_function(SharedNet{}, both, forward_options({.kind = kind}));
    EXPECT_THAT(
        test::message_of<Error>([&] { net.bind_input("x", buffer.get()); }),
        HasSubstr("binding a WGPUBuffer requires a webgpu device, this is " + std::string(kind)));
    net.bind_input("x", nullptr);  // allowed, because nothing is bound
  }
}

TEST(ExternalDevice, incomplete_or_foreign_device_is_rejected_on_webgpu) {
  Application app;
  const auto message = [&](const auto& change) {
    DeviceOptions options = app.options();
    change(options);
    return test::message_of<Error>(
        [&] { compile_function(SharedNet{}, both, forward_options(options)); });
  };
  EXPECT_THAT(message([](auto& o) { o.external.device = nullptr; }),
              HasSubstr("ExternalDevice::device is null"));
  EXPECT_THAT(message([](auto& o) { o.external.instance = nullptr; }),
              HasSubstr("ExternalDevice::instance is null"));
  EXPECT_THAT(message([](auto& o) { o.kind = "cpu"; }),
              HasSubstr("an external device requires kind webgpu or auto, got 'cpu'"));
  EXPECT_THAT(message([](auto& o) { o.webgpu_library = "/nowhere/libwgpu.so"; }),
              HasSubstr("/nowhere/libwgpu.so is not loaded in this process"));
  EXPECT_THAT(message([](auto& o) { o.webgpu_library.clear(); }),
              HasSubstr("DeviceOptions::webgpu_library"));
  DeviceOptions nameless = app.options();
  nameless.external.adapter = nullptr;
  EXPECT_THAT(compile_function(SharedNet{}, both, forward_options(nameless)).device(),
              HasSubstr("the application's device"));
}

TEST(ExternalDevice, is_lost_when_the_application_reports_it_on_webgpu) {
  Application app;
  CompiledFunction net = compile_function(SharedNet{}, both, forward_options(app.options()));
  app.lost = true;
  EXPECT_THROW(net.run({{"x", kX}, {"shift", kShift}}), DeviceLostError);
}

}  // namespace
}  // namespace tensorgrad::testing
