// SPDX-License-Identifier: MIT
// The open device and its ordered queue: uploads, submits in flight, downloads, errors and loss.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/webgpu/adapter.h"
#include "backend/webgpu/api.h"

namespace tensorgrad::webgpu {

// Number of rows in the ring buffer of runtime scalars, and the maximum per submit. With kMaxRuns
// submits in flight, no row that an unfinished step still reads is overwritten.
inline constexpr std::int64_t kRingRows = 1024;
inline constexpr std::int64_t kRowsPerSubmit = 256;
inline constexpr std::size_t kMaxRuns = 3;             // run submits in flight
inline constexpr std::size_t kMaxPendingSubmits = 64;  // submits in flight, including downloads
inline constexpr std::int64_t kRuntimeScalarBytes = sizeof(RuntimeScalars);
static_assert(kRuntimeScalarBytes == 256, "the offset alignment of uniform buffers");
static_assert(kRowsPerSubmit * (static_cast<std::int64_t>(kMaxRuns) + 1) <= kRingRows);
inline constexpr std::int64_t kMinBinding = 16;  // bytes: vec4<f32>

// Errors reported since the last check. Callbacks fill it from any thread.
struct Faults {
  std::mutex mutex;
  bool lost = false;
  std::string lost_message;
  std::string error;  // the first uncaptured error
};

// A submit in flight. The driver holds a pointer to it until its callback has run.
struct PendingSubmit {
  Ticket ticket = 0;
  std::uint64_t mark = 0;  // for Vendor::wait
  std::atomic<bool> done{false};
  std::atomic<bool> failed{false};
  bool is_run = false;
  Handle<WGPUBuffer> staging;  // downloads: mapped when done
  std::int64_t staging_bytes = 0;
  std::span<std::byte> out;
};

struct Buffer {
  Handle<WGPUBuffer> handle;
  std::int64_t bytes = 0;
  std::string label;
  std::uint64_t number = 0;  // distinct for all buffers of a device, unlike its BufferHandle
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

// Submits finish in order. A ticket is finished when its submit is and, for a download, when the
// bytes are on the host. After a loss, every function that needs the device throws DeviceLostError.
//
// Lock: callers hold the mutex of the WebGpuDevice. Callbacks may run in any thread; they write
// only Faults, which has a mutex, and the atomic flags of a PendingSubmit. While the mutex is held,
// several threads may call the const functions.
class SubmitQueue {
 public:
  // Requests a device of the adapter, or takes the application's if `external` is not null.
  SubmitQueue(const Api& api, const Adapter& adapter, const WebGpuOptions& options,
              const ExternalDevice* external);
  SubmitQueue(const SubmitQueue&) = delete;
  SubmitQueue& operator=(const SubmitQueue&) = delete;
  ~SubmitQueue();

  [[nodiscard]] const Api& api() const { return api_; }
  [[nodiscard]] WGPUDevice device() const { return device_.get(); }
  [[nodiscard]] WGPUQueue native() const { return queue_.get(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const DeviceLimits& limits() const { return limits_; }

  // Throws what was reported since the last call.
  void throw_faults();
  // Throws if the device is lost, even if the library has not reported it yet. Must precede each
  // call in which wgpu-native would abort the process.
  void expect_alive();
  void begin_scope();
  // Returns the first error since begin_scope(), or an empty string. Throws if the device is lost.
  std::string end_scope();
  // Destroys the device, as if the driver had failed.
  void lose();

  Handle<WGPUBuffer> create_buffer(std::int64_t bytes, WGPUBufferUsage usage,
                                   const std::string& label);
  // Returns a storage buffer of `bytes` bytes, rounded up to a multiple of 256.
  Buffer create_storage(std::int64_t bytes, const std::string& label);
  // `modes` has 'r' or 'w' per storage binding; "h" is the layout of a row of runtime scalars.
  Handle<WGPUBindGroupLayout> create_layout(const std::string& modes);
  void upload(const Buffer& target, std::int64_t offset, std::span<const std::byte> data);
  Ticket download(const Buffer& source, std::int64_t offset, std::span<std::byte> out);
  // Copies an internal buffer to the host and waits for it.
  void read_back(WGPUBuffer source, std::span<std::byte> out);

  // Writes rows into the ring buffer and returns the index of the first. At most kMaxRuns - 1 runs
  // may be in flight.
  std::uint32_t write_rows(std::span<const RuntimeScalars> rows);
  void bind_row(WGPUComputePassEncoder pass, std::size_t row) const;
  [[nodiscard]] WGPUBindGroupLayout row_layout() const { return ring_layout_.get(); }

  [[nodiscard]] Handle<WGPUCommandEncoder> create_encoder() const;
  // Adds to HostTimes::encoding until the result is destroyed.
  [[nodiscard]] Stopwatch time_encoding() { return Stopwatch(host_.encoding); }
  [[nodiscard]] const HostTimes& host_times() const { return host_; }
  Ticket submit(std::span<const WGPUCommandBuffer> commands, bool is_run);
  Ticket finish_and_submit(WGPUCommandEncoder encoder, bool is_run);
  // Submits, and then maps the first `bytes` bytes of `buffer` for reading. The ticket is finished
  // when they are mapped. The caller keeps the buffer and unmaps it.
  Ticket submit_and_map(std::span<const WGPUCommandBuffer> commands, WGPUBuffer buffer,
                        std::int64_t bytes);
  // Maps a buffer for writing, likewise. A submit must have been made.
  Ticket map_for_writing(WGPUBuffer buffer, std::int64_t bytes);
  // Adds to HostTimes::exchanging.
  void note_exchange(double microseconds, bool hidden) {
    host_.exchanging += microseconds;
    if (hidden) host_.exchanging_hidden += microseconds;
  }

  [[nodiscard]] std::size_t runs_in_flight() const;
  // Waits until one more submit, or run submit, may be in flight.
  void make_room(bool for_run);
  [[nodiscard]] Ticket last_ticket() const { return last_ticket_; }
  bool done(Ticket ticket);
  // Waits for the ticket. If it throws, no destination of a download up to `ticket` is written any
  // more.
  void wait(Ticket ticket);
  // Waits for all submits. Throws if the device is lost.
  void wait_for_all() { wait_for(last_ticket_); }

 private:
  void request_device(const Adapter& adapter, const WebGpuOptions& options);
  void make_ring();
  [[nodiscard]] bool lost();
  [[noreturn]] void throw_lost();
  [[noreturn]] void drop();
  PendingSubmit& take_off(std::span<const WGPUCommandBuffer> commands, bool is_run);
  PendingSubmit& add_pending(std::uint64_t mark, bool is_run);
  void map(WGPUBuffer buffer, WGPUMapMode mode, std::int64_t bytes, PendingSubmit& submit);
  Handle<WGPUCommandBuffer> finish(WGPUCommandEncoder encoder);
  Ticket copy_out(WGPUBuffer source, std::int64_t offset, std::span<std::byte> out);
  Handle<WGPUBuffer> take_staging(std::int64_t bytes, std::int64_t& capacity);
  void deliver(PendingSubmit& submit);
  void settle();
  void wait_oldest();
  void wait_for(Ticket ticket);

  const Api& api_;
  const std::atomic<bool>* externally_lost_ = nullptr;
  const std::string name_;
  DeviceLimits limits_;
  HostTimes host_;
  // Callbacks may run while the device is released, so what they point to is freed after it.
  Faults faults_;
  // Oldest first. They remain after a loss, since their callbacks may or may not still run.
  std::list<PendingSubmit> pending_;
  std::list<PendingSubmit> free_submits_;  // for reuse
  Ticket last_ticket_ = 0, finished_ = 0;
  std::uint64_t last_mark_ = 0;

  // In order of creation; released in reverse.
  Handle<WGPUDevice> device_;
  Handle<WGPUQueue> queue_;
  Handle<WGPUBindGroupLayout> ring_layout_;
  Handle<WGPUBuffer> ring_;
  Handle<WGPUBindGroup> ring_group_;
  std::int64_t ring_next_ = 0;
  std::vector<std::pair<std::int64_t, Handle<WGPUBuffer>>> staging_;  // unused; with sizes
};

}  // namespace tensorgrad::webgpu
