// SPDX-License-Identifier: MIT
// A CPU device that computes one op wrongly, for tests of tools that look for differences.
#pragma once

#include <memory>
#include <vector>

#include "debug/wrapped_device.h"
#include "ops/pointwise.h"

namespace tensorgrad::testing {

// Replaces `from` with `to` in every launch.
inline void corrupt(Program& program, const OpDef& from, const OpDef& to) {
  for (Launch& launch : program.launches) {
    for (ScalarProgram* part : programs_of(launch)) {
      for (Instr& instr : part->instrs) {
        if (instr.code == from.code) instr.code = to.code;
      }
    }
  }
}

class WrongDevice final : public WrappedDevice {
 public:
  // Only launches of at least `least_ops` fused ops are computed wrongly.
  WrongDevice(const OpDef& from, const OpDef& to, std::size_t least_ops = 0)
      : WrappedDevice(make_cpu_device({.threads = 1})),
        from_(from),
        to_(to),
        least_ops_(least_ops) {}

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
    return WrappedDevice::prepare(*programs_.back(), buffers);
  }

 private:
  const OpDef& from_;
  const OpDef& to_;
  std::size_t least_ops_;
  std::vector<std::unique_ptr<Program>> programs_;
};

}  // namespace tensorgrad::testing
