// SPDX-License-Identifier: MIT
// Results of a function that stay on the device.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tensorgrad/train/handle.h"
#include "tensorgrad/train/inputs.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Immutable tensor in device memory, returned by CompiledFunction::run_on_device(). It can be
/// passed to any function or training step on the same device (see DeviceOptions::opened), which
/// reads it in place. Nothing is copied to the host.
///
/// Copies of the object refer to the same tensor. Its memory is not part of the function's
/// report(). The function reuses the memory once the last copy is destroyed. The tensor keeps its
/// device alive.
/// ```cpp
/// tg::NamedDeviceTensors out = encoder.run_on_device({{"image", pixels}});
/// trainer.step({{"code", out.at("output")}, {"label", labels}});
/// ```
class DeviceTensor {
 public:
  /// Wraps an implementation; only run_on_device() creates tensors.
  explicit DeviceTensor(std::shared_ptr<const detail::DeviceValue> value)
      : value_(std::move(value), "DeviceTensor") {}

  /// Returns the element type.
  [[nodiscard]] DType dtype() const;

  /// Returns the shape.
  [[nodiscard]] const Shape& shape() const;

  /// Returns a copy of the tensor in host memory. Waits for the run that computes it. Throws
  /// DeviceError if that run failed.
  [[nodiscard]] HostTensor download(Loc loc = Loc::current()) const;

 private:
  friend struct FeedValue;
  detail::Handle<const detail::DeviceValue> value_;
};

/// Device tensors by name: the outputs and captures of CompiledFunction::run_on_device().
using NamedDeviceTensors = std::map<std::string, DeviceTensor>;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
