// SPDX-License-Identifier: MIT
// A fixed set of worker threads that execute parallel loops together with the calling thread. Each
// thread first executes its own share of the tasks. It is the same part of every loop, so that data
// written in one loop is in its caches in the next. Then it takes tasks from other threads' shares.
// So a preempted worker delays at most one task, and a worker that has not woken up delays nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tensorgrad::cpu {

class ThreadPool {
 public:
  // `threads` includes the calling thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(task, worker) for every task in [0, tasks), with worker in [0, threads()). No two
  // threads use the same worker number at a time. Returns when all tasks are done. `body` must not
  // throw. Only one thread may call this at a time.
  template <class Body>
  void parallel_for(std::int64_t tasks, const Body& body) {
    if (tasks <= 1 || workers_.empty()) {
      for (std::int64_t i = 0; i < tasks; ++i) body(i, 0);
      return;
    }
    run(
        tasks, [](const void* b, std::int64_t i, int w) { (*static_cast<const Body*>(b))(i, w); },
        &body);
  }

 private:
  using Call = void (*)(const void* body, std::int64_t task, int worker);
  // Unclaimed tasks up to `end`.
  struct alignas(64) Share {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };

  void run(std::int64_t tasks, Call call, const void* body);
  void drain(int worker);
  void work(int worker);
  bool join(std::uint32_t& seen);
  void leave();

  // The current loop. Written only while no worker is inside: state_ is closed and nobody has
  // joined.
  Call call_ = nullptr;
  const void* body_ = nullptr;
  std::vector<Share> shares_;
  std::size_t used_ = 0;  // number of shares in this loop
  // Bits 32..63: the loop's number; bit 31: open for joining; bits 0..30: workers inside.
  alignas(64) std::atomic<std::uint64_t> state_{0};
  // The number of the latest loop, which workers sleep on; and the number of sleepers.
  alignas(64) std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;  // libc++ 16 has no std::jthread
};

}  // namespace tensorgrad::cpu
