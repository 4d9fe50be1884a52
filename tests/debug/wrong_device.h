// SPDX-License-Identifier: MIT
// A CPU that computes one op wrongly, to see that what looks for differences finds one.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "ops/pointwise.h"

namespace tensorgrad::testing {

// In every launch, `from` becomes `to`.
inline void corrupt(Program& program, const OpDef& from, const OpDef& to) {
  for (Launch& launch : program.launches) {
    for (ScalarProgram* part : {&launch.body, &launch.a, &launch.b}) {
      for (Instr& instr : part->instrs) {
        if (instr.code == from.code) instr.code = to.code;
      }
    }
  }
}

class WrongDevice final : public Device {
 public:
  // Only launches of at least `least_ops` fused ops are computed wrongly.
  WrongDevice(const OpDef& from, const OpDef& to, std::size_t least_ops = 0)
      : cpu_(make_cpu_device({.threads = 1})), from_(from), to_(to), least_ops_(least_ops) {}

  [[nodiscard]] const DeviceInfo& info() const override { return cpu_->info(); }
  BufferHandle alloc(std::int64_t bytes, const std::string& label) override {
    return cpu_->alloc(bytes, label);
  }
  void free(BufferHandle buffer) override { cpu_->free(buffer); }
  void upload(BufferHandle buffer, std::int64_t offset, std::span<const std::byte> data) override {
    cpu_->upload(buffer, offset, data);
  }
  Ticket download(BufferHandle buffer, std::int64_t offset, std::span<std::byte> out) override {
    return cpu_->download(buffer, offset, out);
  }
  std::unique_ptr<Executable> prepare(const Program& program,
                                      std::span<const BufferHandle> buffers) override {
    programs_.push_back(std::make_unique<Program>(program));
    for (Launch& launch : programs_.back()->launches) {
      if (launch.ops.size() < least_ops_) continue;
      Program one;
      one.launches = {launch};
      corrupt(one, from_, to_);
      launch = one.launches[0];
    }
    return cpu_->prepare(*programs_.back(), buffers);
  }
  Ticket run(Executable& executable, std::span<const HyperRow> rows) override {
    return cpu_->run(executable, rows);
  }
  [[nodiscard]] bool done(Ticket ticket) override { return cpu_->done(ticket); }
  void wait(Ticket ticket) override { cpu_->wait(ticket); }
  std::vector<LaunchTiming> profile(Executable& executable, const HyperRow& row) override {
    return cpu_->profile(executable, row);
  }

 private:
  std::unique_ptr<Device> cpu_;
  const OpDef& from_;
  const OpDef& to_;
  std::size_t least_ops_;
  std::vector<std::unique_ptr<Program>> programs_;
};

}  // namespace tensorgrad::testing
