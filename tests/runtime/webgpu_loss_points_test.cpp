// SPDX-License-Identifier: MIT
// A device that is lost at any call of the WebGPU library raises DeviceLostError. The process and
// its other trainers continue. The library of losing/losing_webgpu.cc loses the device.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/env.h"
#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

std::string losing_library() {
  const std::string other = env("TENSORGRAD_TEST_LOSING_LIB");  // ./dev units sets it for Dawn
  return other.empty() ? TENSORGRAD_LOSING_WEBGPU : other;
}

class LosingLibrary {
 public:
  LosingLibrary() : library_(dlopen(losing_library().c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    arm_ = symbol<void (*)(const char*, long, bool)>("losing_arm");
    calls_ = symbol<long (*)()>("losing_calls");
    lost_ = symbol<bool (*)()>("losing_lost");
  }
  void arm(const char* function, long at, bool after) const { arm_(function, at, after); }
  [[nodiscard]] long calls() const { return calls_(); }
  [[nodiscard]] bool lost() const { return lost_(); }

 private:
  template <class F>
  F symbol(const char* name) {
    return reinterpret_cast<F>(dlsym(library_, name));
  }
  void* library_;
  void (*arm_)(const char*, long, bool) = nullptr;
  long (*calls_)() = nullptr;
  bool (*lost_)() = nullptr;
};

struct Small {
  nn::Linear fc{3, 2};
  TG_MODULE(fc)
};

// Compiles, trains, predicts, and transfers parameters in both directions.
std::vector<float> everything_once() {
  const std::vector<float> x(12, 0.5F), y(8, 1.0F);
  auto trainer = compile(
      Small{}, [](const Small& net, const Inputs& in) { return mse(net.fc(in["x"]), in["y"]); },
      {.inputs = {{"x", {4, 3}}, {"y", {4, 2}}},
       .optimizer = optim::SGD{.lr = 0.1},
       .seed = 3,
       .device = {.kind = "webgpu",
                  .allow_software = true,
                  .checked = true,
                  .webgpu_library = losing_library()}});
  auto predict = trainer.attach([](const Small& net, const Inputs& in) { return net.fc(in["x"]); },
                                {.inputs = {{"x", {4, 3}}}});
  std::vector<float> seen;
  for (int i = 0; i < 2; ++i) seen.push_back(trainer.step({{"x", x}, {"y", y}}).loss);
  const std::vector<float> out = predict({{"x", x}}).floats();
  seen.insert(seen.end(), out.begin(), out.end());
  trainer.upload_params(trainer.download_params());
  seen.push_back(trainer.step({{"x", x}, {"y", y}}).loss);
  return seen;
}

TEST(LossPoints, device_lost_at_any_call_throws_device_lost_error_on_webgpu) {
  const LosingLibrary library;
  library.arm("", 0, false);
  const std::vector<float> whole = everything_once();
  int losses = 0;
  for (const char* function :
       {"wgpuBufferGetConstMappedRange", "wgpuBufferMapAsync", "wgpuBufferUnmap",
        "wgpuCommandEncoderBeginComputePass", "wgpuCommandEncoderFinish",
        "wgpuDeviceCreateBindGroup", "wgpuDeviceCreateBuffer", "wgpuDeviceCreateCommandEncoder",
        "wgpuDeviceCreateComputePipeline", "wgpuDeviceCreateShaderModule",
        "wgpuDevicePopErrorScope", "wgpuQueueOnSubmittedWorkDone", "wgpuQueueWriteBuffer"}) {
    library.arm(function, 0, false);
    EXPECT_EQ(everything_once(), whole);
    const long calls = library.calls();
    EXPECT_GT(calls, 0) << function;
    const long stride = std::max(1L, calls / 12);
    for (long at = 1; at <= calls; at += stride) {
      for (const bool after : {false, true}) {
        // Destroying the device unmaps memory at once, which a loss does not.
        if (after && function == std::string_view("wgpuBufferGetConstMappedRange")) continue;
        SCOPED_TRACE(std::string(function) + (after ? ", after call " : ", before call ") +
                     std::to_string(at) + " of " + std::to_string(calls));
        library.arm(function, at, after);
        try {
          // If no later call can notice the loss, the results are unchanged.
          EXPECT_EQ(everything_once(), whole);
        } catch (const DeviceLostError& error) {
          EXPECT_THAT(error.what(), ::testing::HasSubstr("was lost"));
          ++losses;
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
        EXPECT_TRUE(library.lost());
      }
    }
  }
  EXPECT_GE(losses, 100);
  library.arm("", 0, false);
  EXPECT_EQ(everything_once(), whole);  // on a new device, in the same process
}

}  // namespace
}  // namespace tensorgrad::testing
