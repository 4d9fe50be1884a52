// SPDX-License-Identifier: MIT
// A result that stays on the device.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tensorgrad/train/inputs.h"
#include "tensorgrad/train/handle.h"

namespace tensorgrad {

// What Forward::run_on_device() gives: a tensor in the memory of the device, which does not change
// any more. As an input of a function or of a step on the same device (DeviceOptions::opened) it is
// read where it lies; nothing is copied to the host. Copies are the same tensor. It has memory of
// its own, which report() does not count and which the function uses again when nobody has the
// tensor any more; the device lives as long as it does.
//   tg::DeviceOutputs out = encoder.run_on_device({{"image", pixels}});
//   trainer.step({{"code", out.at("output")}, {"label", labels}});
class DeviceTensor {
 public:
  explicit DeviceTensor(std::shared_ptr<const detail::DeviceValue> value)
      : value_(std::move(value), "DeviceTensor") {}
  [[nodiscard]] DType dtype() const;
  [[nodiscard]] const Shape& shape() const;
  // Waits for the work that makes it. Throws what went wrong in it.
  [[nodiscard]] HostTensor download(Loc loc = Loc::current()) const;

 private:
  friend struct FeedValue;
  detail::Handle<const detail::DeviceValue> value_;
};

using DeviceOutputs = std::map<std::string, DeviceTensor>;

}  // namespace tensorgrad
