// SPDX-License-Identifier: MIT
// Counts how many nodes, views and groups a compile visits. Tests check that the count is bounded.
// A caller may watch the count and stop the compile.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct VisitState {
  std::int64_t count = 0, next = std::numeric_limits<std::int64_t>::max();
  const std::function<void()>* watcher = nullptr;
};

class Visits {
 public:
  // Returns the number of visits of this thread so far.
  static std::int64_t count() { return state.count; }

  static void add(std::int64_t visits) {
    state.count += visits;
    if (state.count >= state.next) report();
  }

 private:
  friend class VisitWatch;

  static constexpr std::int64_t kBetweenReports = 1 << 16;

  static void report() {
    state.next = state.count + kBetweenReports;
    if (state.watcher != nullptr) (*state.watcher)();
  }

  static inline thread_local VisitState state;
};

// RAII guard that calls `watcher` once per kBetweenReports visits of this thread. The watcher may
// throw.
class VisitWatch {
 public:
  explicit VisitWatch(std::function<void()> watcher)
      : watcher_(std::move(watcher)), before_(Visits::state) {
    if (!watcher_) return;
    Visits::state.watcher = &watcher_;
    Visits::state.next = Visits::state.count + Visits::kBetweenReports;
  }
  VisitWatch(const VisitWatch&) = delete;
  VisitWatch& operator=(const VisitWatch&) = delete;
  ~VisitWatch() {
    Visits::state.watcher = before_.watcher;
    Visits::state.next = before_.next;
  }

 private:
  std::function<void()> watcher_;
  VisitState before_;
};

inline void visit(std::int64_t count = 1) { Visits::add(count); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI
