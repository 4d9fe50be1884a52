// SPDX-License-Identifier: MIT
// A program with its buffers on a device, and the choice of the device.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "compile/compile.h"
#include "tensorgrad/device.h"

namespace tensorgrad {

// Opens the device that the options ask for; `why` says what was chosen and why. Throws DeviceError
// where it is not to be had, UserError for an unknown kind.
std::shared_ptr<Device> open_device(const DeviceOptions& options, std::string& why);

// The values of the run-time scalars, by name, as 32-bit patterns.
using HyperValues = std::map<std::string, std::uint32_t>;

// Names of the buffers that the host fills and reads.
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

// Which buffers of its owner's an instance uses, where names and sizes are the same.
enum class Share {
  kModel,    // parameters and states
  kProgram,  // all but slots and constants: it is the same program with other outputs
};

class Instance {
 public:
  // Allocates the program's buffers, but for those that it shares with `owner`, where one is given;
  // fills constants, and makes the kernels.
  Instance(std::shared_ptr<Device> device, Program program,
           const std::shared_ptr<Instance>& owner = {}, Share share = Share::kModel);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();

  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] std::shared_ptr<Device> shared_device() const { return device_; }
  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] bool has_buffer(const std::string& name) const;
  [[nodiscard]] bool shares(const std::string& buffer) const;  // it is its owner's
  [[nodiscard]] std::int64_t buffer_bytes(const std::string& name) const;

  // By the buffer's name; offsets and sizes in bytes.
  void upload(const std::string& buffer, std::int64_t offset, std::span<const std::byte> data);
  // Waits for the data.
  void download(const std::string& buffer, std::int64_t offset, std::span<std::byte> out);
  // Runs once for each row; missing names are 0.
  Ticket run(const std::vector<HyperValues>& rows);
  void wait(Ticket ticket) { device_->wait(ticket); }
  std::vector<LaunchTiming> profile(const HyperValues& row);

  // What TENSORGRAD_SHADOW, _DEBUG and _DUMP ask to be shown of the runs of this program, which was
  // compiled with these options.
  void inspect(const Compiled& compiled, const PlanOptions& options);
  // Checks every launch of all further runs against the reference; see compile/shadow.h.
  void shadow(const Compiled& compiled, const PlanOptions& options);

 private:
  Ticket run_inspected(const std::vector<HyperRow>& rows);
  std::vector<LaunchTiming> profile_row(const HyperRow& row);
  [[nodiscard]] std::size_t index_of(const std::string& buffer) const;
  [[nodiscard]] HyperRow row_of(const HyperValues& values) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<Instance> owner_;
  Program program_;
  std::vector<BufferHandle> buffers_;
  std::vector<bool> owned_;
  std::map<std::string, std::size_t> by_name_;
  std::unique_ptr<Executable> executable_;
  std::unique_ptr<Shadow> shadow_;
  std::shared_ptr<DumpFolder> dump_;
  int runs_until_timed_ = 0;  // 0: no run is timed
};

}  // namespace tensorgrad
