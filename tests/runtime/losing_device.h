// SPDX-License-Identifier: MIT
// A WebGPU device that is lost at a chosen call and can be opened again.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "backend/webgpu/device.h"
#include "compile/runtime/instance.h"
#include "debug/wrapped_device.h"

namespace tensorgrad::testing {

// State shared by the devices of a test.
struct Losses {
  int calls = 0;           // of the current device and the previous ones
  int lose_before = 0;     // loses the device before this call
  bool lose_all = false;   // also loses it before every later call
  bool comes_back = true;  // false: it cannot be opened again
  bool busy = false;       // true: done() returns false
  int opened = 0;
};

class LosingDevice final : public WrappedDevice {
 public:
  explicit LosingDevice(std::shared_ptr<Losses> losses) : LosingDevice(open(), std::move(losses)) {}

  BufferHandle alloc(std::int64_t bytes, const std::string& label) override {
    count();
    return WrappedDevice::alloc(bytes, label);
  }
  void upload(BufferHandle buffer, std::int64_t offset, std::span<const std::byte> data) override {
    count();
    WrappedDevice::upload(buffer, offset, data);
  }
  Ticket download(BufferHandle buffer, std::int64_t offset, std::span<std::byte> out) override {
    count();
    return WrappedDevice::download(buffer, offset, out);
  }
  std::unique_ptr<Executable> prepare(const Program& program,
                                      std::span<const BufferHandle> buffers) override {
    count();
    return WrappedDevice::prepare(program, buffers);
  }
  Ticket run(Executable& executable, std::span<const RuntimeScalars> rows) override {
    count();
    return WrappedDevice::run(executable, rows);
  }
  std::size_t run_some(Executable& executable, const RuntimeScalars& row, std::size_t first,
                       std::size_t end, std::chrono::duration<double> budget) override {
    count();
    return inner_->run_some(executable, row, first, end, budget);
  }
  bool done(Ticket ticket) override { return !losses_->busy && WrappedDevice::done(ticket); }
  void wait(Ticket ticket) override {
    count();
    WrappedDevice::wait(ticket);
  }

 private:
  LosingDevice(const std::shared_ptr<Device>& inner, std::shared_ptr<Losses> losses)
      : WrappedDevice(inner), inner_(inner), losses_(std::move(losses)) {
    ++losses_->opened;
    reopen = [losses = losses_]() -> std::shared_ptr<Device> {
      if (!losses->comes_back) throw DeviceError("no adapter found");
      return std::make_shared<LosingDevice>(losses);
    };
  }

  static std::shared_ptr<Device> open() {
    std::string reason;
    return open_device({.kind = "webgpu", .allow_software = true}, reason);
  }

  void count() {
    ++losses_->calls;
    const bool now = losses_->calls == losses_->lose_before ||
                     (losses_->lose_all && losses_->calls > losses_->lose_before);
    if (now) dynamic_cast<webgpu::WebGpuDevice&>(*inner_).lose();
  }

  std::shared_ptr<Device> inner_;
  std::shared_ptr<Losses> losses_;
};

}  // namespace tensorgrad::testing
