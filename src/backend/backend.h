// SPDX-License-Identifier: MIT
// The device interface: one ordered queue of uploads, runs and downloads. All calls are
// thread-safe. Calls on one device are serialized in the order they are made.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/gpu_model.h"
#include "kernel/program.h"
#include "tensorgrad/train/external_device.h"
#include "tensorgrad/train/host_times.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// DeviceLimits::max_buffer_bytes of a null device with unlimited buffers. Bindings are then
// unlimited, too.
inline constexpr std::int64_t kAnySize = std::numeric_limits<std::int64_t>::max();

struct DeviceLimits {
  int max_storage_bindings = 8;  // per launch
  std::int64_t max_binding_bytes = 128LL << 20;
  std::int64_t max_buffer_bytes = 256LL << 20;
  int max_workgroup_invocations = 256;
  std::int64_t max_workgroup_bytes = 16 << 10;

  bool operator==(const DeviceLimits&) const = default;
};

struct DeviceInfo {
  std::string backend;          // "cpu", "webgpu", "null"
  std::string name;             // "NVIDIA H100", "AMD EPYC, 2 threads, AVX2"
  std::string driver;           // "wgpu-native 29.0.1, Vulkan, ..."; may be empty
  bool computes = true;         // false: the null device, whose buffers have no contents
  bool asynchronous = false;    // run() may return before the work is done
  bool software = false;        // a rasterizer on the CPU
  bool cuts_rows = false;       // splits the long rows of a launch among its threads itself
  bool joins_launches = false;  // runs concurrent launches as one kernel
  bool slow_barriers = false;   // a barrier costs more than the arithmetic that it saves
  bool stores_f16 = true;       // kernels may access f16 elements; stores round to nearest
  DeviceLimits limits;
  std::vector<std::string> features;
  GpuModel gpu = {};  // the defaults where the device does not tell
};

using BufferHandle = std::uint32_t;

// A point in the queue that can be waited for. Ticket 0 is always finished.
using Ticket = std::uint64_t;

// A program prepared for a device: pipelines and bind groups. Must be freed before its device.
class Executable {
 public:
  Executable() = default;
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  virtual ~Executable() = default;
};

// A range of a buffer that the host replaces within a run. The launches before `ready` write it;
// `ready` does not lie within concurrent launches or a fused sequence, and does not decrease from
// range to range.
struct HostRange {
  std::int64_t offset = 0, bytes = 0;  // multiples of 4
  std::size_t ready = 0;
};
// Computes the new contents of range number `range` from the old ones. `fresh` is the same memory
// as `old`, or does not overlap it. In the second case it may be slow to read.
using HostReplace = std::function<void(std::size_t range, std::span<const std::byte> old,
                                       std::span<std::byte> fresh)>;

struct LaunchTiming {
  double microseconds = 0;  // device time of one run
  bool by_device = false;   // measured by the device's clock
  bool concurrent = false;  // in one kernel with the previous launch, whose time covers both
};

class Device {
 public:
  // Reopens the same device after a loss, or throws DeviceError. Empty if the device belongs to the
  // application.
  std::function<std::shared_ptr<Device>()> reopen;
  // The device that replaced this one after a loss.
  std::weak_ptr<Device> successor;

  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  // Returns a zero-filled buffer. Throws DeviceError with `label` and the size if there is not
  // enough memory.
  virtual BufferHandle alloc(std::int64_t bytes, const std::string& label) = 0;
  virtual void free(BufferHandle buffer) = 0;
  // Returns a handle for the application's buffer and keeps a reference to it. Throws UserError if
  // the device does not support such buffers, or if this one is smaller than `bytes` or lacks a
  // required usage.
  virtual BufferHandle adopt(WGPUBufferImpl* buffer, std::int64_t bytes, const std::string& label);

  // Copies `data` before returning. `offset` and the size must be multiples of 4.
  virtual void upload(BufferHandle buffer, std::int64_t offset,
                      std::span<const std::byte> data) = 0;
  // Queues a copy to the host. `out` must stay valid until wait(ticket) returns; only then does it
  // contain the data.
  virtual Ticket download(BufferHandle buffer, std::int64_t offset, std::span<std::byte> out) = 0;

  // Uses buffers[i] for program.buffers[i]. The program must outlive the executable.
  virtual std::unique_ptr<Executable> prepare(const Program& program,
                                              std::span<const BufferHandle> buffers) = 0;
  // Adds a set of buffers: run i of a call of run() uses set i modulo the number of sets, where
  // prepare() makes set 0. Only for asynchronous devices.
  virtual void add_set(Executable& executable, std::span<const BufferHandle> buffers);
  // Updates an executable after buffers[changed] was replaced. Removes the sets that were added. If
  // it throws, the executable is unchanged.
  virtual void rebind(Executable& executable, std::span<const BufferHandle> buffers,
                      int changed) = 0;
  // Runs the program rows.size() times, each time with its own runtime scalars. Uses one submit if
  // the device has submits. May return before the work is done; the number of runs in flight is
  // bounded.
  virtual Ticket run(Executable& executable, std::span<const RuntimeScalars> rows) = 0;

  // Runs launches `first`, `first` + 1, ... of one run, up to `end` (excluded), and waits for them.
  // Runs as many as fit into `budget`, by their previous times, but at least one. Returns the
  // number of the next launch, or 0 after the last of the program. `end` must not lie within
  // concurrent launches or a fused sequence. By default, runs all launches of the program.
  virtual std::size_t run_some(Executable& executable, const RuntimeScalars& row, std::size_t first,
                               std::size_t end, std::chrono::duration<double> budget);

  // As run_some(), but runs all launches from `first` to `end`, and may return before they are
  // done. By default, calls run_some().
  virtual Ticket run_part(Executable& executable, const RuntimeScalars& row, std::size_t first,
                          std::size_t end);

  // Returns the contents of a buffer if the host can access them, otherwise an empty span. Must not
  // be used while a run is in progress, except for ranges of run_replacing().
  virtual std::span<std::byte> host_memory(BufferHandle) { return {}; }

  [[nodiscard]] virtual bool done(Ticket ticket) = 0;
  // Waits for the ticket. Throws DeviceError or DeviceLostError for errors up to that point.
  virtual void wait(Ticket ticket) = 0;

  // Runs the program and returns the time of each launch. The run takes effect.
  virtual std::vector<LaunchTiming> profile(Executable& executable, const RuntimeScalars& row) = 0;
  // Returns the host times since the device was opened.
  [[nodiscard]] virtual HostTimes host_times() const { return {}; }

  // Runs the program once. As soon as the launches that write a range of `buffer` have run, calls
  // `replace`, which computes the new contents of the range on the host; later launches run
  // meanwhile if the device allows it. Launches from `resume` on see the new contents. Calls are
  // made one at a time in the order of the ranges, possibly on another thread; the range is
  // neither read nor written by launches meanwhile. If a call throws, the run is incomplete. May
  // return before the work is done. By default, the host waits for the launches of each range; if
  // it can access the memory of the device, it replaces one range while the launches of the next
  // run.
  virtual Ticket run_replacing(Executable& executable, const RuntimeScalars& row,
                               BufferHandle buffer, std::span<const HostRange> ranges,
                               std::size_t resume, const HostReplace& replace);
};

inline constexpr int kMaxCpuThreads = 256;

struct CpuOptions {
  int threads = 0;  // at most kMaxCpuThreads; 0: all cores available to the process
};
// Throws UserError if the number of threads is out of range.
std::unique_ptr<Device> make_cpu_device(const CpuOptions& options);

// Returns a device that checks programs against `limits` but computes nothing. Downloads return
// zeros.
std::unique_ptr<Device> make_null_device(const DeviceLimits& limits);

struct AdapterInfo {
  DeviceInfo device;
  std::string kind;     // "discrete", "integrated", "cpu", "unknown"
  bool usable = false;  // can be chosen by `auto`
  std::string reason;   // the reason for `usable`
  // True if the adapter may have subgroup matrices. Their shapes are known only for an open device;
  // they are not in `features` here.
  bool offers_subgroup_matrix = false;
};

struct WebGpuOptions {
  int adapter = -1;             // index into list_webgpu_adapters(); -1: the first usable one
  bool allow_software = false;  // allow a software rasterizer if `adapter` is -1
  bool default_limits = false;  // request only the WebGPU default limits
  bool checked = false;         // keep the driver's bounds checks
  // Path of wgpu-native or Dawn. If empty: TENSORGRAD_WEBGPU_LIB, then the default locations.
  std::string library;
  std::string tuning_cache;        // file path; empty: none
  double submit_milliseconds = 0;  // maximum duration of a submit; 0: unlimited
  bool f16x3 = false;              // MatmulPrecision::kF16x3
};
// Returns an empty list if no WebGPU library can be loaded or it has no adapters. `reason` is then
// the reason.
std::vector<AdapterInfo> list_webgpu_adapters(const WebGpuOptions& options, std::string& reason);
// Throws DeviceError if there is no library or no suitable adapter.
std::unique_ptr<Device> make_webgpu_device(const WebGpuOptions& options);
// Opens a device on the application's WebGPU objects. Throws UserError if `external` is incomplete,
// and DeviceError if the library is not found in the process.
std::unique_ptr<Device> adopt_webgpu_device(const ExternalDevice& external,
                                            const WebGpuOptions& options);
// Pauses the caller between two attempts to find a device. In a browser, the page handles its
// events meanwhile.
void pause_for(std::chrono::milliseconds time);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
