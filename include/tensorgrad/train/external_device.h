// SPDX-License-Identifier: MIT
// WebGPU objects of the application, for running programs on its own device.
#pragma once

#include <atomic>

// WGPUInstance, WGPUAdapter, WGPUDevice and WGPUBuffer of webgpu.h are pointers to these types.
struct WGPUInstanceImpl;
struct WGPUAdapterImpl;
struct WGPUDeviceImpl;
struct WGPUBufferImpl;

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// A WebGPU device that belongs to the application. Programs compiled for it submit their work to
/// the device's queue, in the order of the calls. Their inputs, outputs and datasets can be buffers
/// of the device: see CompiledFunction::bind_input(), CompiledFunction::bind_output() and
/// TrainerBase::bind_data().
///
/// The library takes references to `instance`, `device` and `adapter`. It uses the WebGPU library
/// that the process is linked to or has loaded under its usual name. If the application opened
/// another one with `dlopen`, set DeviceOptions::webgpu_library to its path. Compiling throws
/// UserError if a required object is null, or if DeviceOptions::kind is neither "webgpu" nor
/// "auto". It throws DeviceError if no loaded WebGPU library is found.
struct ExternalDevice {
  WGPUInstanceImpl* instance = nullptr;  ///< Required; the instance of the device.
  WGPUDeviceImpl* device = nullptr;      ///< Required; runs the programs.
  WGPUAdapterImpl* adapter = nullptr;    ///< Optional; describes the device in reports.

  /// Flag that the application's device-lost callback sets; may be null. Work is submitted only
  /// while it is false; afterwards, calls throw DeviceLostError. Needed with wgpu-native, which
  /// terminates a process that submits work to a lost device. Must outlive all compiled programs.
  const std::atomic<bool>* lost = nullptr;

  bool operator==(const ExternalDevice&) const = default;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
