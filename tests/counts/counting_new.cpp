// SPDX-License-Identifier: MIT
// Replaces the global operator new of this program by one that counts.
#include "counting_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace tensorgrad::testing {
namespace {
std::atomic<std::int64_t> made_by_new{0};
}  // namespace

std::int64_t allocations() { return made_by_new; }

}  // namespace tensorgrad::testing

#if !defined(TENSORGRAD_SANITIZED)

// Not inlined: compilers warn where they see a free() of what a new gave.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++tensorgrad::testing::made_by_new;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

#endif
