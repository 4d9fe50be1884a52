// SPDX-License-Identifier: MIT
#include <cmath>

#include "backend/webgpu/device.h"
#include "errors/mistake.h"
#include "train/trainer.h"

namespace tensorgrad::testing {

namespace {

// Exposes the device of a trainer.
struct OpenTrainer : AnyTrainer {
  explicit OpenTrainer(const AnyTrainer& trainer) : AnyTrainer(trainer) {}
  [[nodiscard]] webgpu::WebGpuDevice& device() const {
    return dynamic_cast<webgpu::WebGpuDevice&>(impl_->engine().instance().device());
  }
};

}  // namespace

MISTAKE(webgpu_device_that_goes_away, DeviceLostError) {
  CompileOptions options{.optimizer = optim::SGD{},
                         .device = {.kind = "webgpu", .allow_software = true}};
  OpenTrainer trainer(compiled(plain_loss, options));
  const Example example;
  EXPECT_TRUE(std::isfinite(trainer.step(example.feed).loss));
  trainer.device().lose();
  trainer.step(example.feed);  // error: webgpu: the device ...
}

}  // namespace tensorgrad::testing
