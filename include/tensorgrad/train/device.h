// SPDX-License-Identifier: MIT
// Choice of the device that runs a program, and the list of available devices.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/train/external_device.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

class Device;

/// Precision of products of f32 matrices; see DeviceOptions::matmul_precision.
enum class MatmulPrecision : std::uint8_t {
  kHighest,  ///< In f32.
  kF16x3,    ///< As three products of f16 matrices, if the device has matrix units.
};

/// Selects and configures a device. Compiling throws DeviceError if no such device is available,
/// and UserError if an option is out of range.
struct DeviceOptions {
  /// Kind of device:
  /// - "auto": a GPU through WebGPU if one is available that is not a software renderer (a discrete
  ///   GPU is preferred), else the CPU.
  /// - "cpu": the CPU.
  /// - "webgpu": a GPU through WebGPU.
  /// - "null": compiles and plans programs, but computes nothing. See trace().
  std::string kind = "auto";

  int threads = 0;              ///< CPU: 1 to 256; 0: TENSORGRAD_THREADS, or one per core.
  int adapter = -1;             ///< WebGPU: index of the adapter; -1: the first usable one.
  bool allow_software = false;  ///< WebGPU: software renderers are usable too.
  bool default_limits = false;  ///< WebGPU: requests only the default limits of WebGPU.
  bool checked = false;         ///< WebGPU: keeps the driver's bounds checks in kernels.

  /// WebGPU: path of wgpu-native or Dawn. If it is empty, TENSORGRAD_WEBGPU_LIB names the library.
  /// If that is not set either, the library is searched for next to the executable and in the usual
  /// locations.
  std::string webgpu_library = {};

  ExternalDevice external = {};  ///< WebGPU: the application's device, if set.

  /// WebGPU: path of the tuning cache, a file with the fastest matrix-product tiles of each device.
  /// If it is empty, a cost model chooses the tiles. Compiling a program times the products that
  /// the file lacks and adds them to it. Timing needs extra memory for the operands and the result
  /// of one product at a time. Tiles differ in the order of additions, so results can differ in the
  /// last bits from those without a cache. They are the same in every run with the same file.
  /// Throws IoError if the file cannot be read or written.
  std::string tuning_cache = {};

  /// WebGPU: longest time in milliseconds that the device should be busy with one submit, so that
  /// others (a desktop, a page) get their turn; 0: no limit. Kernels are timed in the first run of
  /// a program, each by itself, and again in every 256th. A submit has as many as fit. A single
  /// kernel is not split. The default is 100 in a web page, and 0 elsewhere.
#ifdef __EMSCRIPTEN__
  double submit_milliseconds = 100;
#else
  double submit_milliseconds = 0;
#endif

  /// WebGPU: how products of f32 matrices are computed. With kF16x3, each operand is the sum of two
  /// f16 numbers, x = hi + lo / 2048, and a product is hi hi + (hi lo + lo hi) / 2048, added up in
  /// f32 on matrix units (Ootomo and Yokota 2022). Operands of magnitude 6.1e-5 to 65504 keep 22
  /// bits of their 24. Smaller ones have an absolute error of up to 1.5e-11, so train with a
  /// loss scale. Results of larger ones are infinite or NaN. Other ops, attention, small products
  /// and devices without matrix units compute in f32.
  MatmulPrecision matmul_precision = MatmulPrecision::kHighest;

  /// An open device, as set by CompiledFunction::same_device() or TrainerBase::same_device(). All
  /// other options are ignored if it is set.
  std::shared_ptr<Device> opened = {};

  bool operator==(const DeviceOptions&) const = default;
};

/// Human-readable description of a device.
struct DeviceDescription {
  std::string kind;             ///< "cpu" or "webgpu".
  std::string name;             ///< Name of the device, such as the model of a GPU.
  std::string driver;           ///< WebGPU: library, backend and driver; the CPU has none.
  std::string type;             ///< "discrete", "integrated", "cpu" or "unknown".
  bool usable = false;          ///< True if it can be selected without its number.
  bool chosen_by_auto = false;  ///< True if the kind "auto" selects it.
  std::string reason;           ///< Reason why it is usable or selected, or not.

  std::vector<std::string> features;                         ///< Optional features it supports.
  std::vector<std::pair<std::string, std::int64_t>> limits;  ///< Name and value of each limit.
};

/// Returns the devices of this machine: the CPU, then the WebGPU adapters in the order of
/// DeviceOptions::adapter. Sets `note` to the reason if no WebGPU adapter is available.
std::vector<DeviceDescription> devices(const DeviceOptions& options, std::string& note);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
