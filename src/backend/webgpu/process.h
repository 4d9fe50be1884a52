// SPDX-License-Identifier: MIT
// Detection of forked processes. A child of a process with a WebGPU library lacks that library's
// threads, so every call would wait forever.
#pragma once

#include <mutex>

namespace tensorgrad::webgpu {

inline constexpr const char* kForkedText =
    "a WebGPU library was loaded before fork(), and does not work in the child process; fork "
    "before "
    "the first trainer or function on webgpu, start the child with exec(), or use the device cpu";

// Must be called when a library is loaded. Afterwards, forked() is true in child processes.
void watch_forks();
bool forked();
// Throws DeviceError if forked().
void expect_no_fork();

// A device's lock. lock() throws DeviceError in a forked process.
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
