// SPDX-License-Identifier: MIT
// A device that adds up what it is asked for.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "debug/wrapped_device.h"

namespace tensorgrad::testing {

class MeteredDevice final : public WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;

  BufferHandle alloc(std::int64_t bytes, const std::string& label) override {
    const BufferHandle made = WrappedDevice::alloc(bytes, label);
    sizes_[made] = bytes;
    ++allocated;
    bytes_held += bytes;
    most_held = std::max(most_held, bytes_held);
    return made;
  }
  void free(BufferHandle buffer) override {
    bytes_held -= sizes_.at(buffer);
    sizes_.erase(buffer);
    WrappedDevice::free(buffer);
  }
  std::unique_ptr<Executable> prepare(const Program& program,
                                      std::span<const BufferHandle> buffers) override {
    prepared = program.buffers;
    return WrappedDevice::prepare(program, buffers);
  }

  std::vector<BufferDecl> prepared;  // of the program that was prepared last
  std::int64_t allocated = 0;        // buffers so far
  std::int64_t bytes_held = 0, most_held = 0;

 private:
  std::map<BufferHandle, std::int64_t> sizes_;
};

}  // namespace tensorgrad::testing
