// SPDX-License-Identifier: MIT
// A program with its buffers on a device, and device selection.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "compile/compile.h"
#include "plan/exchange.h"
#include "tensorgrad/train/device.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Opens the device described by the options. Sets `reason` to the choice and its reason. Throws
// DeviceError if the device is not available, and UserError if the kind is unknown.
std::shared_ptr<Device> open_device(const DeviceOptions& options, std::string& reason);

// Reopens a lost device for all its users; the first caller opens it. Throws DeviceLostError if
// that is impossible, or if no equal device is found within `wait_seconds`.
std::shared_ptr<Device> replace_lost(const std::shared_ptr<Device>& lost, double wait_seconds);

// The values of the runtime scalars, by name, as 32-bit patterns.
using ScalarValues = std::map<std::string, std::uint32_t>;
// Returns the row of scalars of a program. Missing names are 0.
RuntimeScalars make_runtime_scalars(const Program& program, const ScalarValues& values);

// Names of the buffers that the host writes and reads.
inline std::string input_buffer(const std::string& name) {
  return buffer_name(BufferKind::kInput, name);
}
inline std::string data_buffer(const std::string& name) {
  return buffer_name(BufferKind::kData, name);
}
inline std::string state_buffer(const std::string& name) {
  return buffer_name(BufferKind::kState, name);
}
inline std::string output_buffer(const std::string& name) {
  return buffer_name(BufferKind::kOutput, name);
}

class Shadow;

// A device buffer with shared ownership: zero-initialized, or provided by the application.
class Memory {
 public:
  Memory(std::shared_ptr<Device> device, std::int64_t bytes, const std::string& label)
      : device_(std::move(device)), handle_(device_->alloc(bytes, label)) {}
  Memory(std::shared_ptr<Device> device, WGPUBufferImpl* native, std::int64_t bytes,
         const std::string& label)
      : device_(std::move(device)), handle_(device_->adopt(native, bytes, label)) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { device_->free(handle_); }
  [[nodiscard]] BufferHandle handle() const { return handle_; }
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }

 private:
  std::shared_ptr<Device> device_;
  BufferHandle handle_;
};
// One entry per buffer of a program; null: the program allocates its own.
using SharedMemory = std::vector<std::shared_ptr<Memory>>;

// Which buffers of another instance are shared, if names and sizes are equal.
enum class Share {
  kModel,    // parameters and states
  kProgram,  // all but slots and constants, for the same program with other outputs
};

class Instance {
 public:
  // Allocates the program's buffers, except those in `shared`, which must be at least as large.
  // Uploads constants and compiles the kernels.
  Instance(std::shared_ptr<Device> device, Program program, SharedMemory shared = {});
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();

  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] bool has_buffer(const std::string& name) const;
  [[nodiscard]] bool shares(const std::string& buffer) const;  // true if it is not its own
  [[nodiscard]] std::int64_t buffer_bytes(const std::string& name) const;

  // Adds to `shared` the buffers of this instance that `program` may use. Keeps existing entries.
  void share_with(const Program& program, Share share, SharedMemory& shared) const;

  [[nodiscard]] const std::shared_ptr<Memory>& memory(const std::string& buffer) const;
  // Replaces a buffer by `memory`, which must have the same size. Removes the sets of buffers.
  void bind(const std::string& buffer, std::shared_ptr<Memory> memory);

  // Makes up to `most` sets of buffers, which differ in the named buffers: run i of run() uses set
  // i (see Device::add_set()). Their size is bounded. Returns the number of sets, at least one.
  std::size_t make_sets(std::span<const std::string> buffers, std::size_t most);

  // Accesses a buffer by name; offset in bytes.
  void upload(const std::string& buffer, std::int64_t offset, std::span<const std::byte> data,
              std::size_t set = 0);
  // Blocks until the data has arrived.
  void download(const std::string& buffer, std::int64_t offset, std::span<std::byte> out);
  // Runs once per row. Missing names are 0.
  Ticket run(std::span<const ScalarValues> rows);
  void wait(Ticket ticket) { device_->wait(ticket); }
  bool done(Ticket ticket) { return device_->done(ticket); }
  // Runs some launches of one run; see Device::run_some().
  std::size_t run_some(const ScalarValues& row, std::size_t first,
                       std::chrono::duration<double> budget);
  // Runs launches from `first` to `end`; see Device::run_part(). Throws as run_replacing().
  Ticket run_part(const ScalarValues& row, std::size_t first, std::size_t end);
  // Runs once and replaces ranges of a buffer meanwhile; see Device::run_replacing(). Throws
  // UserError if TENSORGRAD_SHADOW is set, which needs whole runs.
  Ticket run_replacing(const ScalarValues& row, const std::string& buffer,
                       std::span<const HostRange> ranges, std::size_t resume,
                       const HostReplace& replace);
  // Returns the index of the first launch that changes parameters or states, or the number of
  // launches if none does.
  [[nodiscard]] std::size_t first_lasting_launch() const;
  std::vector<LaunchTiming> profile(const ScalarValues& row);
  // Returns the medians of such runs, with the compile passes known from inspect() and the time to
  // compile the kernels.
  [[nodiscard]] Profile profile_of_runs(const std::vector<std::vector<LaunchTiming>>& runs) const;

  // Enables what TENSORGRAD_SHADOW, TENSORGRAD_DEBUG and TENSORGRAD_DUMP request for runs of this
  // program, which was compiled with these options.
  void inspect(const Compiled& compiled, const PlanOptions& options);
  // Checks every launch of all later runs against the reference; see compile/debug/shadow.h.
  void shadow(const Compiled& compiled, const PlanOptions& options);

 private:
  void check_whole_runs() const;
  Ticket run_inspected(const std::vector<RuntimeScalars>& rows);
  [[nodiscard]] std::size_t index_of(const std::string& buffer) const;

  std::shared_ptr<Device> device_;
  Program program_;
  SharedMemory memory_;
  std::vector<BufferHandle> buffers_;  // handles of memory_
  // Buffers of the sets after the first, by their indices.
  std::vector<std::map<std::size_t, std::shared_ptr<Memory>>> sets_;
  std::vector<bool> owned_;
  std::map<std::string, std::size_t> by_name_;
  std::unique_ptr<Executable> executable_;
  std::unique_ptr<Shadow> shadow_;
  std::shared_ptr<DumpFolder> dump_;
  std::vector<PassProfile> passes_;
  std::chrono::duration<double, std::milli> prepare_time_{};
  int runs_until_timed_ = 0;          // 0: no run is timed
  std::vector<RuntimeScalars> rows_;  // of the last run; kept to avoid allocations
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
