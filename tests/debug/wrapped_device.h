// SPDX-License-Identifier: MIT
// Wrappers of a device: one forwards all calls, the other also records the prepared programs.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace tensorgrad::testing {

class WrappedDevice : public Device {
 public:
  explicit WrappedDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  [[nodiscard]] const DeviceInfo& info() const override { return device_->info(); }
  BufferHandle alloc(std::int64_t bytes, const std::string& label) override {
    return device_->alloc(bytes, label);
  }
  void free(BufferHandle buffer) override { device_->free(buffer); }
  void upload(BufferHandle buffer, std::int64_t offset, std::span<const std::byte> data) override {
    device_->upload(buffer, offset, data);
  }
  Ticket download(BufferHandle buffer, std::int64_t offset, std::span<std::byte> out) override {
    return device_->download(buffer, offset, out);
  }
  std::unique_ptr<Executable> prepare(const Program& program,
                                      std::span<const BufferHandle> buffers) override {
    return device_->prepare(program, buffers);
  }
  void rebind(Executable& executable, std::span<const BufferHandle> buffers, int changed) override {
    device_->rebind(executable, buffers, changed);
  }
  void add_set(Executable& executable, std::span<const BufferHandle> buffers) override {
    device_->add_set(executable, buffers);
  }
  Ticket run(Executable& executable, std::span<const RuntimeScalars> rows) override {
    return device_->run(executable, rows);
  }
  [[nodiscard]] bool done(Ticket ticket) override { return device_->done(ticket); }
  void wait(Ticket ticket) override { device_->wait(ticket); }
  std::vector<LaunchTiming> profile(Executable& executable, const RuntimeScalars& row) override {
    return device_->profile(executable, row);
  }

 private:
  std::shared_ptr<Device> device_;
};

class RecordingDevice final : public WrappedDevice {
 public:
  explicit RecordingDevice(std::shared_ptr<Device> device)
      : WrappedDevice(std::move(device)), told(WrappedDevice::info()) {}

  [[nodiscard]] const DeviceInfo& info() const override { return told; }
  std::unique_ptr<Executable> prepare(const Program& program,
                                      std::span<const BufferHandle> buffers) override {
    programs.push_back(program);
    return WrappedDevice::prepare(program, buffers);
  }

  DeviceInfo told;                // may be changed
  std::vector<Program> programs;  // in the order of preparation
};

}  // namespace tensorgrad::testing
