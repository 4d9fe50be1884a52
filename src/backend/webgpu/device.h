// SPDX-License-Identifier: MIT
// The WebGPU device. Private to backend/webgpu and its tests.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "backend/webgpu/adapter.h"
#include "backend/webgpu/api.h"
#include "backend/webgpu/process.h"
#include "base/parallel.h"
#include "codegen/wgsl/join.h"
#include "codegen/wgsl/matmul/variants.h"
#include "io/tuning_file.h"

namespace tensorgrad::webgpu {

// Number of rows in the ring buffer of run-time scalars, and the maximum per submit. With kMaxRuns
// submits in flight, no row that an unfinished step still reads is overwritten.
inline constexpr std::int64_t kRingRows = 1024;
inline constexpr std::int64_t kRowsPerSubmit = 256;
// Encoding a dispatch costs the host about as much as a small kernel costs the GPU. To overlap
// both, the first submit of many steps, or of a long one, is small. Each later one is as large as
// all previous ones together.
inline constexpr std::int64_t kFirstDispatches = 64;
inline constexpr std::int64_t kDispatchesPerSubmit = 1024;
// Dispatches of a submit per encoder thread, for up to kMaxEncoders threads, if the driver is
// thread-safe.
inline constexpr std::size_t kDispatchesPerEncoder = 64;
inline constexpr std::size_t kMaxEncoders = 4;
inline constexpr std::size_t kMaxRuns = 3;      // run submits in flight
inline constexpr std::size_t kMaxFlights = 64;  // submits in flight, including downloads
inline constexpr std::int64_t kHyperRowBytes = sizeof(RuntimeScalars);
static_assert(kHyperRowBytes == 256, "the offset alignment of uniform buffers");
static_assert(kRowsPerSubmit * (static_cast<std::int64_t>(kMaxRuns) + 1) <= kRingRows);

// Errors reported since the last check. Callbacks fill it from any thread.
struct Faults {
  std::mutex mutex;
  bool lost = false;
  std::string lost_message;
  std::string error;  // the first uncaptured error
};

// A submit in flight. The driver holds a pointer to it until its callback has run.
struct Flight {
  Ticket ticket = 0;
  std::uint64_t mark = 0;  // for Vendor::wait
  std::atomic<bool> done{false};
  std::atomic<bool> failed{false};
  bool is_run = false;
  Handle<WGPUBuffer> staging;  // downloads: mapped when done
  std::int64_t staging_bytes = 0;
  std::span<std::byte> out;
};

// A compiled kernel. Launches with equal text share one.
struct Pipeline {
  Handle<WGPUComputePipeline> handle;
  WGPUBindGroupLayout layout = nullptr;  // these two are owned by the device
  WGPUPipelineLayout whole = nullptr;
};

// Adds its lifetime, in microseconds, to `sum`.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum) {}
  ~Stopwatch() { sum_ += std::chrono::duration<double, std::micro>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& sum_;
  const Clock::time_point start_ = Clock::now();
};

class WebGpuExecutable;
struct Step;
struct Candidate;

// A kernel to be compiled, with the name and location for error messages.
struct Kernel {
  std::string name;
  SourceLocation location;
  Dispatch dispatch;
};

class WebGpuDevice final : public Device {
 public:
  WebGpuDevice(const Api& api, Adapter adapter, const WebGpuOptions& options);
  // Opens the application's device. `adapter` describes it.
  WebGpuDevice(std::unique_ptr<const Api> api, Adapter adapter, const ExternalDevice& external,
               const WebGpuOptions& options);
  WebGpuDevice(const WebGpuDevice&) = delete;
  WebGpuDevice& operator=(const WebGpuDevice&) = delete;
  ~WebGpuDevice() override;

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  BufferHandle alloc(std::int64_t bytes, const std::string& label) override;
  void free(BufferHandle buffer) override;
  BufferHandle adopt(WGPUBuffer native, std::int64_t bytes, const std::string& label) override;
  void upload(BufferHandle buffer, std::int64_t offset, std::span<const std::byte> data) override;
  Ticket download(BufferHandle buffer, std::int64_t offset, std::span<std::byte> out) override;
  std::unique_ptr<Executable> prepare(const Program& program,
                                      std::span<const BufferHandle> buffers) override;
  void rebind(Executable& executable, std::span<const BufferHandle> buffers, int changed) override;
  Ticket run(Executable& executable, std::span<const RuntimeScalars> rows) override;
  std::size_t run_some(Executable& executable, const RuntimeScalars& row, std::size_t first,
                       std::chrono::duration<double> budget) override;
  [[nodiscard]] bool done(Ticket ticket) override;
  void wait(Ticket ticket) override;
  std::vector<LaunchTiming> profile(Executable& executable, const RuntimeScalars& row) override;
  [[nodiscard]] HostTimes host_times() const override;

  // For tests: destroys the device, as if the driver had failed.
  void lose();
  // For tests: compiles `wgsl` in place of the next kernel.
  void replace_next_kernel(std::string wgsl) { replacement_ = std::move(wgsl); }
  // For tests and tuning: forces kernel variants that the sizes would not select.
  void force_kernels(const WgslOptions& options) { forced_ = options; }
  [[nodiscard]] WgslOptions kernel_options() const;
  // For tests: sets the maximum number of threads that encode a long run, at most kMaxEncoders.
  // encoded_by() returns how many encoded the last run.
  void force_encoders(std::size_t threads) { encoders_ = threads; }
  [[nodiscard]] std::size_t encoded_by() const { return encoded_by_; }
  // For tests: times kernels by the host clock, as on devices without timestamps.
  void force_host_clock() { timestamps_ = false; }
  // For tests: returns how many contractions were timed for the tuning cache.
  [[nodiscard]] int timed_contractions() const { return timed_contractions_; }

 private:
  struct Buffer {
    Handle<WGPUBuffer> handle;
    std::int64_t bytes = 0;
    std::string label;
  };

  // device.cpp
  void request_device(const WebGpuOptions& options);
  void open(const WebGpuOptions& options);  // the common part of both constructors
  void make_ring();
  BufferHandle add(Buffer buffer);
  Handle<WGPUBuffer> create_buffer(std::int64_t bytes, WGPUBufferUsage usage,
                                   const std::string& label);
  Buffer& buffer(BufferHandle handle);
  [[nodiscard]] bool lost();
  [[noreturn]] void throw_lost();
  void throw_faults();
  // Throws if the device is lost, even if the library has not reported it yet. Must precede each
  // call in which wgpu-native would abort the process.
  void expect_alive();
  void begin_scope();
  // Returns the first error since begin_scope(), or an empty string. Throws if the device is lost.
  std::string end_scope();

  // queue.cpp
  Handle<WGPUCommandBuffer> finish(WGPUCommandEncoder encoder);
  Flight& finish_and_submit(WGPUCommandEncoder encoder, bool is_run);
  Flight& submit(std::span<const WGPUCommandBuffer> commands, bool is_run);
  void watch(Flight& flight);
  [[nodiscard]] std::size_t runs_in_flight() const;
  [[noreturn]] void drop();
  void settle();
  void wait_oldest();
  void wait_for(Ticket ticket);
  void deliver(Flight& flight);
  Handle<WGPUBuffer> take_staging(std::int64_t bytes, std::int64_t& capacity);
  void map(Flight& flight, std::int64_t bytes);

  // prepare.cpp
  std::shared_ptr<Pipeline> pipeline(const Kernel& kernel);
  std::shared_ptr<Pipeline> compile(const Kernel& kernel);
  std::vector<std::shared_ptr<Pipeline>> compile_together(const std::vector<Kernel>& kernels);
  Handle<WGPUShaderModule> make_module(const Kernel& kernel, const std::string& text);
  void make_pipeline(const Kernel& kernel, WGPUShaderModule module, Pipeline& pipeline);
  using Work = std::vector<std::pair<const Kernel*, std::shared_ptr<Pipeline>>>;
  void make_by_threads(const Work& work);
  void make_in_background(const Work& work);
  std::shared_ptr<Pipeline> with_layouts(const Kernel& kernel);
  WGPUBindGroupLayout layout(const std::string& modes);
  WGPUPipelineLayout pipeline_layout(const std::string& modes, bool uses_hyper);
  Handle<WGPUBindGroup> bind(const Step& step, std::span<const BufferHandle> buffers);
  void check_kernel(const Kernel& kernel) const;
  Step make_step(Kernel kernel, std::span<const BufferHandle> buffers);

  // tuning.cpp
  std::vector<std::shared_ptr<Pipeline>> tune(const Program& program,
                                              std::vector<Dispatch>& dispatches);
  std::vector<Candidate> make_candidates(const std::vector<Kernel>& kernels,
                                         std::span<const BufferHandle> buffers, std::uint32_t row);
  void race(std::vector<Candidate>& candidates, std::uint32_t row);
  io::TuningEntry time_forms(const Launch& launch, const std::vector<ContractionForm>& forms,
                             std::vector<std::shared_ptr<Pipeline>>& kept);
  double time_runs(const Step& step, std::uint32_t row, int count);

  // subgroup_matrix.cpp
  // Runs a kernel on a buffer of `bytes` bytes. Returns its contents, or nothing if the kernel is
  // rejected.
  std::vector<std::byte> try_kernel(const std::string& name, const std::string& text,
                                    std::size_t bytes);
  // True if f16 stores round to nearest, ties to even, and overflow to infinity.
  bool rounds_as_f16();
  // Returns the first subgroup matrix shape that the driver accepts a kernel for.
  SubgroupMatrix find_units();
  // Returns the subgroup size if a trial shows that threads with consecutive indices form a
  // subgroup.
  Subgroups find_subgroups();

  // run.cpp
  std::uint32_t write_rows(std::span<const RuntimeScalars> rows);
  Handle<WGPUCommandEncoder> encode(std::span<const Step> steps, bool uses_hyper,
                                    std::uint32_t first_row, std::size_t count);
  using CommandBuffers = std::array<Handle<WGPUCommandBuffer>, kMaxEncoders>;
  std::size_t encode_together(const WebGpuExecutable& executable, std::span<const Step> steps,
                              std::uint32_t first_row, std::size_t count, CommandBuffers& made);
  void run_chunk(WebGpuExecutable& executable, std::span<const RuntimeScalars> rows);
  void check_first_run(WebGpuExecutable& executable);
  std::vector<LaunchTiming> profile_by_clock(WebGpuExecutable& executable,
                                             const RuntimeScalars& row);
  std::vector<LaunchTiming> profile_by_query(WebGpuExecutable& executable,
                                             const RuntimeScalars& row);
  void read_back(WGPUBuffer source, std::span<std::byte> out);
  Handle<WGPUQuerySet> make_queries(std::size_t count);
  void encode_alone(WGPUCommandEncoder encoder, const Step& step, std::uint32_t row,
                    const WGPUPassTimestampWrites* writes, int count = 1);

  // limited.cpp
  void submit_steps(const WebGpuExecutable& executable, std::size_t at, std::size_t count,
                    std::uint32_t row, bool is_run);
  void run_timed(WebGpuExecutable& executable, std::size_t at, std::uint32_t row);
  static std::size_t count_fitting(const WebGpuExecutable& executable, std::size_t at,
                                   double seconds);
  void check_unrun(WebGpuExecutable& executable);
  void run_limited(WebGpuExecutable& executable, const RuntimeScalars& row);

  const std::unique_ptr<const Api> own_api_;  // if the device is the application's
  const Api& api_;
  const std::atomic<bool>* externally_lost_ = nullptr;
  std::unique_ptr<Faults> faults_ = std::make_unique<Faults>();
  mutable DeviceMutex mutex_;
  DeviceInfo info_;
  bool checked_ = false, timestamps_ = false;
  double submit_seconds_ = 0;  // maximum duration of a submit; 0: unlimited
  std::string replacement_;
  WgslOptions forced_;
  std::size_t encoders_ =
      std::min<std::size_t>(kMaxEncoders, static_cast<std::size_t>(usable_cores()));
  Crew crew_;  // the encoder threads
  std::size_t encoded_by_ = 0;
  SubgroupMatrix units_;
  std::optional<Subgroups> subgroups_;      // unset until a kernel could use them
  std::unique_ptr<io::TuningFile> tuning_;  // null: none
  int timed_contractions_ = 0;
  HostTimes host_;

  // In order of creation; released in reverse.
  Handle<WGPUInstance> instance_;  // the application's
  Adapter adapter_;
  Handle<WGPUDevice> device_;
  Handle<WGPUQueue> queue_;
  std::map<std::string, Handle<WGPUBindGroupLayout>> layouts_;  // key: "r" or "w" per binding; "h"
  std::map<std::string, Handle<WGPUPipelineLayout>> pipeline_layouts_;
  std::unordered_map<std::string, std::weak_ptr<Pipeline>> pipelines_;  // by body
  Handle<WGPUBuffer> ring_;
  Handle<WGPUBindGroup> ring_group_;
  std::int64_t ring_next_ = 0;
  std::vector<Buffer> buffers_;  // handle - 1
  std::vector<BufferHandle> free_handles_;
  std::vector<std::pair<std::int64_t, Handle<WGPUBuffer>>> staging_;  // unused; with sizes
  // Oldest first. They remain after a loss, since their callbacks may or may not still run.
  std::list<Flight> flights_;
  std::list<Flight> landed_;  // for reuse
  Ticket last_ticket_ = 0, finished_ = 0;
};

struct Step {
  std::string name;
  SourceLocation location;
  std::size_t launches = 1;  // number of the program's launches in this step
  std::vector<Binding> bindings;
  std::shared_ptr<Pipeline> pipeline;
  Handle<WGPUBindGroup> group;
  std::uint32_t groups_x = 1, groups_y = 1;
  bool uses_hyper = false;
  int timed_runs = 1;                     // dispatches per pass of profile()
  std::chrono::duration<double> took{0};  // see limited.cpp
};

class WebGpuExecutable final : public Executable {
 public:
  explicit WebGpuExecutable(DeviceMutex& device_mutex) : mutex_(device_mutex) {}
  WebGpuExecutable(const WebGpuExecutable&) = delete;
  WebGpuExecutable& operator=(const WebGpuExecutable&) = delete;
  // Dawn does not allow objects of a device to be released while another thread uses the device.
  ~WebGpuExecutable() override {
    if (forked()) return;
    const std::lock_guard lock(mutex_);
    steps.clear();
  }

  const Program* program = nullptr;
  std::vector<Step> steps;
  bool uses_hyper = false;
  bool validated = false;  // ran once without an error
  int limited_runs = 0;

 private:
  DeviceMutex& mutex_;
};
WebGpuExecutable& own(Executable& executable);

}  // namespace tensorgrad::webgpu
