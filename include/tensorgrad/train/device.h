// SPDX-License-Identifier: MIT
// Which device runs a program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/train/external_device.h"

namespace tensorgrad {

class Device;

struct DeviceOptions {
  // "auto": a GPU through WebGPU if there is one that is not a software rasteriser, else the CPU.
  // "cpu", "webgpu", or "null" (plans and counts, computes nothing).
  std::string kind = "auto";
  int threads = 0;                  // cpu: 1 to 256; 0 for as many as there are cores
  int adapter = -1;                 // webgpu: number in devices(); -1 for the first usable one
  bool allow_software = false;      // webgpu: let -1 take a software rasteriser
  bool default_limits = false;      // webgpu: ask for no more than the WebGPU defaults
  bool checked = false;             // webgpu: keep the driver's bounds checks in kernels
  std::string webgpu_library = {};  // path of wgpu-native or Dawn; empty: the usual places
  ExternalDevice external = {};     // webgpu: the application's device, in place of an adapter
  // webgpu: path of a file that remembers which tiles of matrix products this device computes
  // fastest; empty: a cost model chooses. What the file lacks is timed when a program is compiled,
  // which takes memory for the operands of one product more meanwhile, and added to it. Another
  // tile may add up in another order, so last bits may differ from those without the file; with the
  // same file they are the same in every run. UserError where it cannot be read or written.
  std::string tuning_cache = {};
  // One that is open: what same_device() of a function or a trainer gives. Nothing else counts
  // then.
  std::shared_ptr<Device> opened = {};
  bool operator==(const DeviceOptions&) const = default;
};

// One adapter, for people.
struct DeviceDescription {
  std::string kind;                // "cpu", "webgpu"
  std::string name, driver, type;  // type: "discrete", "integrated", "cpu" ...
  bool chosen_by_auto = false;
  std::string why;  // why `auto` takes it, or not
  std::vector<std::string> features;
  std::vector<std::pair<std::string, std::int64_t>> limits;
};

// Every device of this machine; `note` says why there are no WebGPU adapters, if there are none.
std::vector<DeviceDescription> devices(const DeviceOptions& options, std::string& note);

}  // namespace tensorgrad
