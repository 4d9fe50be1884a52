// SPDX-License-Identifier: MIT
#include "backend/webgpu/process.h"

#include <atomic>
#include <string>

#include "backend/webgpu/api.h"
#include "base/os/process.h"
#include "tensorgrad/error.h"

namespace tensorgrad::webgpu {
namespace {

std::atomic<bool> is_child{false};

}  // namespace

void watch_forks() {
  static const bool watched = [] {
    os::call_after_fork([] {
      is_child = true;
      process_ends = true;  // releases no object of the parent's library
    });
    return true;
  }();
  static_cast<void>(watched);
}

bool forked() { return is_child; }

void expect_no_fork() {
  if (!forked()) return;
  throw DeviceError(std::string("webgpu: ") + kForkedText);
}

}  // namespace tensorgrad::webgpu
