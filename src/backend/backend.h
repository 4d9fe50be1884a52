// SPDX-License-Identifier: MIT
// A device as the rest of the library sees it: one ordered queue of
// uploads, runs and downloads. Every call may come from any thread;
// calls on one device are serialised in the order they are made.
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

#include "kernel/program.h"
#include "tensorgrad/train/external_device.h"
#include "tensorgrad/train/host_times.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// As DeviceLimits::max_buffer_bytes of the null device: bindings may have any size, too.
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
  bool computes = true;         // false: the null device, whose buffers hold nothing
  bool software = false;        // a rasteriser on the CPU
  bool cuts_rows = false;       // shares a long row of a launch among all of its threads by itself
  bool joins_launches = false;  // runs launches beside each other as one
  bool slow_barriers = false;   // a barrier costs more than the arithmetic that it saves
  bool stores_f16 = true;       // kernels may read and write elements of two bytes, which are
                                // rounded to nearest when stored
  DeviceLimits limits;
  std::vector<std::string> features;
};

using BufferHandle = std::uint32_t;

// A finished point of the queue. 0 is done from the start.
using Ticket = std::uint64_t;

// A program made ready for a device: pipelines and bind groups. Freed before its device.
class Executable {
 public:
  Executable() = default;
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  virtual ~Executable() = default;
};

struct LaunchTiming {
  double microseconds = 0;  // device time of one run
  bool by_device = false;   // told by the device's own clock
  bool beside = false;      // ran in one kernel with the launch before, which has the time of both
};

class Device {
 public:
  // Opens the same device anew after a loss, or throws DeviceError. Empty if it is not ours to
  // open.
  std::function<std::shared_ptr<Device>()> reopen;
  // What took its place after a loss.
  std::weak_ptr<Device> successor;

  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceInfo& info() const = 0;

  // Zero-filled. Throws DeviceError, naming `label` and the bytes, where there is no room.
  virtual BufferHandle alloc(std::int64_t bytes, const std::string& label) = 0;
  virtual void free(BufferHandle buffer) = 0;
  // A handle for the application's buffer, of which it keeps a reference. Throws UserError where
  // the device has no such buffers, or this one is smaller than `bytes` or not to be used so.
  virtual BufferHandle adopt(WGPUBufferImpl* buffer, std::int64_t bytes, const std::string& label);

  // Copies `data` before it returns. `offset` and the size are multiples of 4.
  virtual void upload(BufferHandle buffer, std::int64_t offset,
                      std::span<const std::byte> data) = 0;
  // Asks for a copy to the host. `out` holds it, and must live, until wait(ticket) has returned.
  virtual Ticket download(BufferHandle buffer, std::int64_t offset, std::span<std::byte> out) = 0;

  // buffers[i] stands for program.buffers[i]. The program must outlive the executable.
  virtual std::unique_ptr<Executable> prepare(const Program& program,
                                              std::span<const BufferHandle> buffers) = 0;
  // The same executable with buffers of which number `changed` is another than before. On an
  // exception it is as it was.
  virtual void rebind(Executable& executable, std::span<const BufferHandle> buffers,
                      int changed) = 0;
  // Runs the program rows.size() times, each time with its own hyper row, in one submit where the
  // device has submits. May return before the work is done; a bounded number of runs is in flight.
  virtual Ticket run(Executable& executable, std::span<const HyperRow> rows) = 0;

  // Runs launches of one run from number `first` on, as many as fit `budget` by what they took
  // before, at least one, and waits for them. Returns the number of the next, or 0 after the last.
  // By default, runs all at once.
  virtual std::size_t run_some(Executable& executable, const HyperRow& row, std::size_t first,
                               std::chrono::duration<double> budget);

  [[nodiscard]] virtual bool done(Ticket ticket) = 0;
  // Waits for it, and throws what went wrong up to there (DeviceError, DeviceLostError).
  virtual void wait(Ticket ticket) = 0;

  // Time per launch of one run (which does take effect): for reports.
  virtual std::vector<LaunchTiming> profile(Executable& executable, const HyperRow& row) = 0;
  // Since it was opened.
  [[nodiscard]] virtual HostTimes host_times() const { return {}; }
};

inline constexpr int kMostCpuThreads = 256;

struct CpuOptions {
  int threads = 0;  // at most kMostCpuThreads; 0: as many as the machine has cores for us
};
// UserError where the number of threads is out of range.
std::unique_ptr<Device> make_cpu_device(const CpuOptions& options);

// Plans, counts and checks; computes nothing. Downloads give zeros.
std::unique_ptr<Device> make_null_device(const DeviceLimits& limits);

struct AdapterInfo {
  DeviceInfo device;
  std::string kind;     // "discrete", "integrated", "cpu", "unknown"
  bool usable = false;  // may be chosen by `auto`
  std::string why;      // why it may, or may not
  // There may be matrix units; which, an open device alone says: `features` has none.
  bool offers_units = false;
};

struct WebGpuOptions {
  int adapter = -1;             // index into list_webgpu_adapters(); -1: the first usable one
  bool allow_software = false;  // let -1 take a software rasteriser
  bool default_limits = false;  // ask for no more than the WebGPU defaults
  bool checked = false;         // keep the driver's bounds checks
  // Path of wgpu-native or Dawn; empty: TENSORGRAD_WEBGPU_LIB, then the usual places.
  std::string library;
  std::string tuning_cache;        // path of a file; empty: none
  double submit_milliseconds = 0;  // that a submit may take; 0: any
};
// Empty where no WebGPU library can be loaded; then `why` says so.
std::vector<AdapterInfo> list_webgpu_adapters(const WebGpuOptions& options, std::string& why);
// Throws DeviceError where there is no library or no fitting adapter.
std::unique_ptr<Device> make_webgpu_device(const WebGpuOptions& options);
// On the application's device. Throws UserError where what is given is not complete, DeviceError
// where the library is not to be found in the process.
std::unique_ptr<Device> adopt_webgpu_device(const ExternalDevice& external,
                                            const WebGpuOptions& options);
// Pauses the caller between two looks for a device. A page handles its events meanwhile.
void pause_for(std::chrono::milliseconds time);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
