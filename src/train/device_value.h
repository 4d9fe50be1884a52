// SPDX-License-Identifier: MIT
// The value behind a DeviceTensor, and conversion of stored elements to host tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compile/runtime/instance.h"
#include "tensorgrad/train/device_tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Converts stored elements of `type` to a host tensor. `stored` is their type in memory: f32 for
// f16 if the device has no f16.
HostTensor host_tensor(const Type& type, DType stored, std::vector<std::byte> bytes);
// Returns what `std::cout << tensor` writes.
std::string text_of(const HostTensor& tensor);

namespace detail {

// A tensor in device memory. No program writes to the memory during its lifetime.
struct DeviceValue {
  Type type;
  DType stored;
  std::shared_ptr<Memory> memory;
};

}  // namespace detail
}  // namespace tensorgrad::inline TENSORGRAD_ABI
