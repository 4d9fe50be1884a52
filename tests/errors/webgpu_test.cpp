// SPDX-License-Identifier: MIT
// WebGPU devices that cannot be opened or are lost.
#include <cmath>

#include "backend/webgpu/device.h"
#include "errors/example.h"
#include "train/trainer.h"

namespace tensorgrad::testing {
namespace {

// Exposes the device of a trainer.
struct OpenTrainer : AnyTrainer {
  explicit OpenTrainer(const AnyTrainer& trainer) : AnyTrainer(trainer) {}
  [[nodiscard]] webgpu::WebGpuDevice& webgpu_device() const {
    return dynamic_cast<webgpu::WebGpuDevice&>(impl_->session().instance().device());
  }
};

}  // namespace

TEST(WebGpuErrors, adapter_unknown) {
  EXPECT_ERROR(compiled(plain_loss, {.device = {.kind = "webgpu", .adapter = 99}}), DeviceError,
               "webgpu: unknown adapter 99; found:");
}

TEST(WebGpuErrors, device_lost) {
  OpenTrainer trainer(compiled(plain_loss, {.device = {.kind = "webgpu", .allow_software = true}}));
  const Example example;
  EXPECT_TRUE(std::isfinite(trainer.step(example.feed).loss));
  trainer.webgpu_device().lose();
  EXPECT_ERROR(trainer.step(example.feed), DeviceLostError, StartsWith("webgpu: the device "));
}

TEST(WebGpuErrors, library_missing) {
  CompileOptions options{.device = {.kind = "webgpu"}};
  options.device.webgpu_library = temporary("libwgpu.so");
  EXPECT_ERROR(compiled(plain_loss, options), DeviceError,
               "webgpu: no WebGPU library could be loaded; tried:");
}

}  // namespace tensorgrad::testing
