// SPDX-License-Identifier: MIT
// The WebGPU device. Private to backend/webgpu and its tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/webgpu/adapter.h"
#include "backend/webgpu/api.h"
#include "backend/webgpu/capability_probe.h"
#include "backend/webgpu/executable.h"
#include "backend/webgpu/launch_profiler.h"
#include "backend/webgpu/pipeline_cache.h"
#include "backend/webgpu/process.h"
#include "backend/webgpu/runner.h"
#include "backend/webgpu/submit_queue.h"
#include "backend/webgpu/tuner.h"

namespace tensorgrad::webgpu {

// Owns the parts of the device and the table of its buffers.
//
// Lock: every call holds mutex_, and the parts rely on it.
class WebGpuDevice final : public Device {
 public:
  WebGpuDevice(std::shared_ptr<const Api> api, Adapter adapter, const WebGpuOptions& options);
  // Opens the application's device. `adapter` describes it.
  WebGpuDevice(std::unique_ptr<const Api> api, Adapter adapter, const ExternalDevice& external,
               const WebGpuOptions& options);
  WebGpuDevice(const WebGpuDevice&) = delete;
  WebGpuDevice& operator=(const WebGpuDevice&) = delete;
  ~WebGpuDevice() override;

  [[nodiscard]] const DeviceInfo& info() const override { return probe_.info(); }
  BufferHandle alloc(std::int64_t bytes, const std::string& label) override;
  void free(BufferHandle buffer) override;
  BufferHandle adopt(WGPUBuffer native, std::int64_t bytes, const std::string& label) override;
  void upload(BufferHandle buffer, std::int64_t offset, std::span<const std::byte> data) override;
  Ticket download(BufferHandle buffer, std::int64_t offset, std::span<std::byte> out) override;
  std::unique_ptr<Executable> prepare(const Program& program,
                                      std::span<const BufferHandle> buffers) override;
  void rebind(Executable& executable, std::span<const BufferHandle> buffers, int changed) override;
  void add_set(Executable& executable, std::span<const BufferHandle> buffers) override;
  Ticket run(Executable& executable, std::span<const RuntimeScalars> rows) override;
  std::size_t run_some(Executable& executable, const RuntimeScalars& row, std::size_t first,
                       std::size_t end, std::chrono::duration<double> budget) override;
  [[nodiscard]] bool done(Ticket ticket) override;
  void wait(Ticket ticket) override;
  std::vector<LaunchTiming> profile(Executable& executable, const RuntimeScalars& row) override;
  Ticket run_part(Executable& executable, const RuntimeScalars& row, std::size_t first,
                  std::size_t end) override;
  Ticket run_replacing(Executable& executable, const RuntimeScalars& row, BufferHandle buffer,
                       std::span<const HostRange> ranges, std::size_t resume,
                       const HostReplace& replace) override;
  [[nodiscard]] HostTimes host_times() const override;

  // For tests: destroys the device, as if the driver had failed.
  void lose();
  // For tests: compiles `wgsl` in place of the next kernel.
  void replace_next_kernel(std::string wgsl) { pipelines_.replace_next(std::move(wgsl)); }
  // For tests and tuning: forces kernel variants that the sizes would not select.
  void force_kernels(const WgslOptions& options) { forced_ = options; }
  [[nodiscard]] WgslOptions kernel_options() const { return probe_.kernel_options(forced_); }
  // For tests: sets the maximum number of threads that encode a long run, at most kMaxEncoders.
  // encoded_by() returns how many encoded the last run.
  void force_encoders(std::size_t threads) { runner_.force_encoders(threads); }
  [[nodiscard]] std::size_t encoded_by() const { return runner_.encoded_by(); }
  // For tests: times kernels by the host clock, as on devices without timestamps.
  void force_host_clock() { profiler_.force_host_clock(); }
  // For tests: returns how many contractions were timed for the tuning cache.
  [[nodiscard]] int timed_contractions() const { return tuner_.timed_contractions(); }

 private:
  WebGpuDevice(std::shared_ptr<const Api> api, Adapter adapter, const ExternalDevice* external,
               const WebGpuOptions& options);
  static WebGpuExecutable& own(Executable& executable);
  BufferHandle add(Buffer buffer);
  Buffer& buffer(BufferHandle handle);
  // Returns null for handles of no buffer.
  [[nodiscard]] std::vector<const Buffer*> find(std::span<const BufferHandle> handles) const;

  const std::shared_ptr<const Api> shared_api_;
  const Api& api_;
  mutable DeviceMutex mutex_;
  WgslOptions forced_;

  // In order of creation; released in reverse.
  Handle<WGPUInstance> instance_;  // the application's
  Adapter adapter_;
  SubmitQueue queue_;
  PipelineCache pipelines_;
  CapabilityProbe probe_;
  LaunchProfiler profiler_;
  Runner runner_;
  Tuner tuner_;
  std::vector<Buffer> buffers_;  // handle - 1
  std::uint64_t added_ = 0;      // number of buffers so far
  std::set<WebGpuExecutable*> executables_;
  std::vector<BufferHandle> free_handles_;
};

}  // namespace tensorgrad::webgpu
