// SPDX-License-Identifier: MIT
// What a DeviceTensor stands for, and how stored elements become the host's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compile/instance.h"
#include "tensorgrad/train/device_tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Elements of `type` that lie as `stored` (an f16 as f32 where the device has no f16).
HostTensor host_tensor(const Type& type, DType stored, std::vector<std::byte> bytes);
// Returns what `std::cout << tensor` writes.
std::string text_of(const HostTensor& tensor);

namespace detail {

// While this lives, no program writes to the memory.
struct DeviceValue {
  Type type;
  DType stored;
  std::shared_ptr<Memory> memory;
};

}  // namespace detail
}  // namespace tensorgrad::inline TENSORGRAD_ABI
