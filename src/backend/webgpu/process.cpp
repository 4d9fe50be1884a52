// SPDX-License-Identifier: MIT
#include "backend/webgpu/process.h"

#if !defined(_WIN32) && !defined(__EMSCRIPTEN__)
#include <pthread.h>
#endif

#include <atomic>
#include <string>

#include "backend/webgpu/api.h"
#include "tensorgrad/error.h"

namespace tensorgrad::webgpu {
namespace {

std::atomic<bool> is_child{false};

}  // namespace

void watch_forks() {
#if !defined(_WIN32) && !defined(__EMSCRIPTEN__)
  static const int watched = ::pthread_atfork(nullptr, nullptr, [] {
    is_child = true;
    process_ends = true;  // releases no object of the parent's library
  });
  static_cast<void>(watched);
#endif
}

bool forked() { return is_child; }

void expect_no_fork() {
  if (!forked()) return;
  throw DeviceError(std::string("webgpu: ") + kForkedText);
}

}  // namespace tensorgrad::webgpu
