// SPDX-License-Identifier: MIT
// A device that counts allocations, transfers and runs.
#pragma once

#include <algorithm>
#include <map>
#include <set>
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
  void upload(BufferHandle buffer, std::int64_t offset, std::span<const std::byte> data) override {
    uploaded += static_cast<std::int64_t>(data.size());
    WrappedDevice::upload(buffer, offset, data);
  }
  Ticket download(BufferHandle buffer, std::int64_t offset, std::span<std::byte> out) override {
    downloaded += static_cast<std::int64_t>(out.size());
    return WrappedDevice::download(buffer, offset, out);
  }
  std::unique_ptr<Executable> prepare(const Program& program,
                                      std::span<const BufferHandle> buffers) override {
    prepared = program.buffers;
    return WrappedDevice::prepare(program, buffers);
  }

  Ticket run(Executable& executable, std::span<const RuntimeScalars> rows) override {
    runs += static_cast<std::int64_t>(rows.size());
    ran.insert(&executable);
    return WrappedDevice::run(executable, rows);
  }

  std::vector<BufferDecl> prepared;  // of the last prepared program
  std::int64_t allocated = 0;        // buffers so far
  std::int64_t bytes_held = 0, most_held = 0;
  std::int64_t uploaded = 0, downloaded = 0;  // bytes so far
  std::int64_t runs = 0;                      // of programs
  std::set<const Executable*> ran;

 private:
  std::map<BufferHandle, std::int64_t> sizes_;
};

}  // namespace tensorgrad::testing
