// SPDX-License-Identifier: MIT
// The thread pool. After a loop, workers spin for some microseconds, then sleep on a futex.
#include "backend/cpu/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <limits>
#include <system_error>

#include "backend/cpu/denormals.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif
#ifdef __EMSCRIPTEN_PTHREADS__
#include <emscripten/threading.h>
#endif

namespace tensorgrad::cpu {
namespace {

constexpr std::uint64_t kDynamic = std::uint64_t{1} << 31;
constexpr std::uint64_t kInside = kDynamic - 1;
// A few microseconds pass between two launches of a step. After a longer time, sleeping is better
// for other processes.
constexpr std::chrono::microseconds kSpin{40};
constexpr int kPausesPerLook = 16;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until ready() or until a timeout. Returns whether it is ready.
template <class Ready>
bool spin_until(const Ready& ready) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (ready()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return ready();
}

// Sleeps while the low word of `at` is that of `value`; may also return earlier. For WebAssembly,
// libc++ polls instead, with pauses of up to 8 ms.
template <class T>
void sleep_while(const std::atomic<T>& at, T value) {
#ifdef __EMSCRIPTEN_PTHREADS__
  emscripten_futex_wait(const_cast<std::atomic<T>*>(&at), static_cast<std::uint32_t>(value),
                        std::numeric_limits<double>::infinity());
#else
  at.wait(value);
#endif
}

template <class T>
void wake_all(std::atomic<T>& at) {
#ifdef __EMSCRIPTEN_PTHREADS__
  emscripten_futex_wake(&at, INT_MAX);
#else
  at.notify_all();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) : shares_(static_cast<std::size_t>(std::max(threads, 1))) {
  workers_.reserve(static_cast<std::size_t>(std::max(threads - 1, 0)));
  try {
    for (int w = 1; w < threads; ++w) workers_.emplace_back([this, w] { work(w); });
  } catch (const std::system_error&) {
    // The system offers no more threads, or none at all (a page). The existing ones do the
    // work.
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  epoch_.fetch_add(1);
  wake_all(epoch_);
  for (std::thread& worker : workers_) worker.join();
}

// Enters the current loop if it is open and the worker has not been in it yet.
bool ThreadPool::join(std::uint32_t& seen) {
  std::uint64_t state = state_.load(std::memory_order_relaxed);
  while ((state & kDynamic) != 0 && static_cast<std::uint32_t>(state >> 32) != seen) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) {
      seen = static_cast<std::uint32_t>(state >> 32);
      return true;
    }
  }
  return false;
}

void ThreadPool::leave() {
  const std::uint64_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kDynamic) == 0 && (before & kInside) == 1) wake_all(state_);
}

void ThreadPool::drain(int worker) {
  const std::size_t own = static_cast<std::size_t>(worker) % used_;
  for (std::size_t i = 0; i < used_; ++i) {
    Share& share = shares_[(own + i) % used_];
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      const std::int64_t task = share.next.fetch_add(1, std::memory_order_relaxed);
      if (task < share.end) call_(body_, task, worker);
    }
  }
}

void ThreadPool::work(int worker) {
  const DenormalsAreZeros flushing;
  std::uint32_t seen = 0;
  for (;;) {
    const std::uint32_t epoch = epoch_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (join(seen)) {
      drain(worker);
      leave();
      continue;
    }
    const auto changed = [&] { return epoch_.load(std::memory_order_acquire) != epoch; };
    if (spin_until(changed)) continue;
    // The thread that starts a loop increments epoch_ and then reads sleepers_. A sleeper
    // increments sleepers_ and then reads epoch_. Both are sequentially consistent, so at least one
    // sees the other.
    sleepers_.fetch_add(1);
    sleep_while(epoch_, epoch);
    sleepers_.fetch_sub(1);
  }
}

void ThreadPool::run(std::int64_t tasks, Call call, const void* body) {
  call_ = call;
  body_ = body;
  used_ = std::min(shares_.size(), static_cast<std::size_t>(tasks));
  const auto used = static_cast<std::int64_t>(used_);
  for (std::int64_t i = 0; i < used; ++i) {
    Share& share = shares_[static_cast<std::size_t>(i)];
    share.next.store(tasks * i / used, std::memory_order_relaxed);
    share.end = tasks * (i + 1) / used;
  }
  const std::uint64_t number = ((state_.load(std::memory_order_relaxed) >> 32) + 1) & 0xffffffffu;
  state_.store(number << 32 | kDynamic, std::memory_order_release);
  epoch_.fetch_add(1);
  if (sleepers_.load() > 0) wake_all(epoch_);
  drain(0);
  std::uint64_t state = state_.fetch_and(~kDynamic, std::memory_order_acq_rel) & ~kDynamic;
  if ((state & kInside) == 0) return;
  const auto empty = [&] {
    state = state_.load(std::memory_order_acquire);
    return (state & kInside) == 0;
  };
  while (!spin_until(empty)) sleep_while(state_, state);
}

}  // namespace tensorgrad::cpu
