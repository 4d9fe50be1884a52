// SPDX-License-Identifier: MIT
// Replaces glibc's functions in this program and in all libraries that it loads.
#include "failing_malloc.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace tensorgrad::testing {
namespace {

std::atomic<std::int64_t> allocated{0}, live{0};
std::atomic<std::int64_t> first{-1}, last{-1};  // numbers of the allocations that fail; -1: none

}  // namespace

void fail_allocation(std::int64_t number, Failing failing) {
  const std::int64_t from = allocated + number;
  last = failing == Failing::kOne ? from : INT64_MAX;
  first = from;
}

void stop_failing() { first = last = -1; }

std::int64_t allocations() { return allocated; }
std::int64_t live_allocations() { return live; }

#ifdef __GLIBC__
namespace {

bool fails() {
  const std::int64_t number = allocated++;
  if (first < 0 || number < first || number > last) return false;
  errno = ENOMEM;
  return true;
}

void* made(void* memory) {
  if (memory != nullptr) ++live;
  return memory;
}

}  // namespace
#endif

}  // namespace tensorgrad::testing

#ifdef __GLIBC__

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): glibc's own names
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* memory);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

using tensorgrad::testing::fails;
using tensorgrad::testing::made;

[[gnu::noinline]] void* malloc(std::size_t bytes) noexcept {
  return fails() ? nullptr : made(__libc_malloc(bytes));
}
[[gnu::noinline]] void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return fails() ? nullptr : made(__libc_calloc(count, bytes));
}
[[gnu::noinline]] void* realloc(void* memory, std::size_t bytes) noexcept {
  if (fails()) return nullptr;
  void* const moved = __libc_realloc(memory, bytes);
  if (memory == nullptr) made(moved);
  return moved;
}
[[gnu::noinline]] void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return fails() ? nullptr : made(__libc_memalign(alignment, bytes));
}
[[gnu::noinline]] void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return fails() ? nullptr : made(__libc_memalign(alignment, bytes));
}
[[gnu::noinline]] int posix_memalign(void** memory, std::size_t alignment,
                                     std::size_t bytes) noexcept {
  if (fails()) return ENOMEM;
  *memory = made(__libc_memalign(alignment, bytes));
  return *memory == nullptr ? ENOMEM : 0;
}
[[gnu::noinline]] void free(void* memory) noexcept {
  if (memory != nullptr) --tensorgrad::testing::live;
  __libc_free(memory);
}

}  // extern "C"

#endif
