// SPDX-License-Identifier: MIT
// Pipelines that a library creates in the background, as Dawn does. All are requested before any is
// ready, and they complete in any order. If one fails, each is created again by itself.
#include <functional>

#include "webgpu_test_util.h"
#include "wrapped_vendor.h"

namespace tensorgrad::testing {
namespace {

struct Background {
  Api real;
  std::vector<std::function<void()>> due;  // the last requested one is completed first
  std::size_t asked = 0, most_due = 0;
  bool refuses = false;
};
Background background;

WGPUFuture make_later(WGPUDevice device, const WGPUComputePipelineDescriptor* descriptor,
                      WGPUCreateComputePipelineAsyncCallbackInfo info) {
  ++background.asked;
  WGPUComputePipeline made = nullptr;
  if (!background.refuses || background.asked != 2)
    made = background.real.DeviceCreateComputePipeline(device, descriptor);
  background.due.emplace_back([info, made] {
    info.callback(made == nullptr ? WGPUCreatePipelineAsyncStatus_ValidationError
                                  : WGPUCreatePipelineAsyncStatus_Success,
                  made, {}, info.userdata1, info.userdata2);
  });
  background.most_due = std::max(background.most_due, background.due.size());
  return {};
}

// Completes one request at each poll.
class MakesInBackground final : public WrappedVendor {
 public:
  using WrappedVendor::WrappedVendor;

  [[nodiscard]] bool concurrent() const override { return false; }
  void poll(const Api& api, WGPUDevice device) const override {
    WrappedVendor::poll(api, device);
    if (background.due.empty()) return;
    const std::function<void()> last = std::move(background.due.back());
    background.due.pop_back();
    last();
  }
};

// Returns a program of several different kernels, each of which reads the output of the previous
// one.
TestProgram kernels(int count) {
  TestProgram test;
  int last = test.buffer(DType::kF32, 200);
  for (int i = 0; i < count; ++i) {
    const int next = test.buffer(DType::kF32, 200);
    Launch& launch = test.launch(MapLaunch{200}, "times" + std::to_string(i));
    test.bind(launch, last, BindMode::kRead);
    test.bind(launch, next, BindMode::kWrite);
    ProgramMaker make;
    const int value = make.op(
        "mul", {make.load(0, whole({200})), make.constant(0.5F + static_cast<float>(i) / 4)});
    launch.body = make.program;
    TestProgram::store(launch, 1, value, whole({200}));
    last = next;
  }
  return test;
}

TEST(WebGpuBackground, pipelines_are_requested_together_and_finish_in_any_order) {
  TENSORGRAD_DEVICE_OR_RETURN(any);
  static Api api = real_api();  // the device keeps a reference
  background.real = api;
  api.DeviceCreateComputePipelineAsync = make_later;
  api.vendor = std::make_shared<MakesInBackground>(api.vendor);
  for (const bool refuses : {false, true}) {
    background.refuses = refuses;
    background.asked = background.most_due = 0;
    const std::shared_ptr<webgpu::WebGpuDevice> device = device_through(api);
    ASSERT_NE(device, nullptr);
    TestProgram test = kernels(5);
    test.check(*device);
    EXPECT_EQ(background.asked, 5U);
    EXPECT_EQ(background.most_due, 5U);
    EXPECT_TRUE(background.due.empty());
  }
}

}  // namespace
}  // namespace tensorgrad::testing
