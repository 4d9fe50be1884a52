// SPDX-License-Identifier: MIT
// DeviceTensor: a result in device memory.
#include "train/device_value.h"

#include "compile/runtime/element_codec.h"
#include "trace/source_location.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

HostTensor host_tensor(const Type& type, DType stored, std::vector<std::byte> bytes) {
  const auto count = static_cast<std::size_t>(numel(type.shape));
  if (stored != type.dtype) bytes = to_stored(from_stored(bytes, count, stored), type.dtype);
  bytes.resize(count * element_bytes(type.dtype));
  return {type.dtype, type.shape, std::move(bytes)};
}

DType DeviceTensor::dtype() const { return value_->type.dtype; }
const Shape& DeviceTensor::shape() const { return value_->type.shape; }

HostTensor DeviceTensor::download(Loc loc) const {
  return with_source_location(loc, [&] {
    const auto count = static_cast<std::size_t>(numel(value_->type.shape));
    std::vector<std::byte> bytes(stored_bytes(count, value_->stored));
    Device& device = *value_->memory->device();
    device.wait(device.download(value_->memory->handle(), 0, bytes));
    return host_tensor(value_->type, value_->stored, std::move(bytes));
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
