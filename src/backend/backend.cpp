// SPDX-License-Identifier: MIT
// Default implementations of Device members.
#include "backend/backend.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "base/check.h"
#include "base/parallel.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::chrono::duration<double> kUnlimited(std::numeric_limits<double>::infinity());
constexpr std::size_t kToTheEnd = std::numeric_limits<std::size_t>::max();

// Counts the ranges whose launches have run, for the thread that replaces them.
class Progress {
 public:
  void advance() {
    const std::lock_guard lock(mutex_);
    ++ready_;
    changed_.notify_all();
  }
  void fail() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }
  // Waits until the launches of the range have run. Returns false if one of the two threads failed.
  bool wait_for(std::size_t range) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || ready_ > range; });
    return !failed_;
  }
  [[nodiscard]] bool failed() {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

 private:
  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::size_t ready_ = 0;
  bool failed_ = false;
};

}  // namespace

BufferHandle Device::adopt(WGPUBufferImpl*, std::int64_t, const std::string& label) {
  throw UserError(label + ": binding a WGPUBuffer requires a webgpu device, this is " +
                  info().backend + " (" + info().name + ")");
}

void Device::add_set(Executable&, std::span<const BufferHandle>) {
  UNREACHABLE("a set of buffers on " + info().backend);
}

std::size_t Device::run_some(Executable& executable, const RuntimeScalars& row, std::size_t,
                             std::size_t, std::chrono::duration<double>) {
  wait(run(executable, {&row, 1}));
  return 0;
}

Ticket Device::run_part(Executable& executable, const RuntimeScalars& row, std::size_t first,
                        std::size_t end) {
  if (first < end) run_some(executable, row, first, end, kUnlimited);
  return 0;
}

Ticket Device::run_replacing(Executable& executable, const RuntimeScalars& row, BufferHandle buffer,
                             std::span<const HostRange> ranges, std::size_t resume,
                             const HostReplace& replace) {
  std::size_t at = 0;  // the next launch
  const auto run_to = [&](std::size_t end) {
    if (at < end) run_some(executable, row, at, end, kUnlimited);
    at = std::max(at, end);
  };
  const std::span<std::byte> memory = host_memory(buffer);
  std::vector<std::byte> old, fresh;
  const auto replace_one = [&](std::size_t i) {
    const auto bytes = static_cast<std::size_t>(ranges[i].bytes);
    if (!memory.empty()) {
      const auto part = memory.subspan(static_cast<std::size_t>(ranges[i].offset), bytes);
      return replace(i, part, part);
    }
    old.resize(bytes);
    fresh.resize(bytes);
    wait(download(buffer, ranges[i].offset, old));
    replace(i, old, fresh);
    upload(buffer, ranges[i].offset, fresh);
  };
  if (memory.empty() || ranges.size() < 2) {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      run_to(ranges[i].ready);
      replace_one(i);
    }
  } else {
    Progress progress;
    const auto launch = [&] {
      for (std::size_t i = 0; i < ranges.size() && !progress.failed(); ++i) {
        run_to(ranges[i].ready);
        progress.advance();
      }
      if (!progress.failed()) run_to(resume);
    };
    const auto replace_all = [&] {
      for (std::size_t i = 0; i < ranges.size() && progress.wait_for(i); ++i) replace_one(i);
    };
    ThreadGroup threads;
    threads.run(2, [&](std::size_t which) {
      try {
        which == 0 ? launch() : replace_all();
      } catch (...) {
        progress.fail();
        throw;
      }
    });
  }
  run_to(resume);
  run_some(executable, row, at, kToTheEnd, kUnlimited);
  return 0;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
