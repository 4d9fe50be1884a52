// SPDX-License-Identifier: MIT
// A process that is forked from one with a WebGPU library has none of that library's threads:
// every call would wait for them.
#pragma once

#include <mutex>

namespace tensorgrad::webgpu {

inline constexpr const char* kForkedText =
    "a WebGPU library was loaded before fork(), and does not work in the child process; fork "
    "before "
    "the first trainer or function on webgpu, start the child with exec(), or use the device cpu";

// Called when a library is loaded. From then on, forked() is true in child processes.
void watch_forks();
bool forked();
// Throws DeviceError if forked().
void expect_no_fork();

// The lock of a device. Throws DeviceError in a forked process.
class DeviceMutex {
 public:
  void lock() {
    expect_no_fork();
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  std::recursive_mutex mutex_;
};

}  // namespace tensorgrad::webgpu
