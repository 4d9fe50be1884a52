// SPDX-License-Identifier: MIT
// Replaces the allocation functions of glibc in this program and in every library that it loads,
// and forwards to them. free() and the memory itself remain those of glibc.
#include "counting_malloc.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace tensorgrad::testing {
namespace {
std::atomic<std::int64_t> allocated{0};
}  // namespace

std::int64_t allocations() { return allocated; }

}  // namespace tensorgrad::testing

#if defined(__GLIBC__) && !defined(TENSORGRAD_SANITIZED)

extern "C" {

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): glibc's own names
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

[[gnu::noinline]] void* malloc(std::size_t bytes) noexcept {
  ++tensorgrad::testing::allocated;
  return __libc_malloc(bytes);
}
[[gnu::noinline]] void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++tensorgrad::testing::allocated;
  return __libc_calloc(count, bytes);
}
[[gnu::noinline]] void* realloc(void* memory, std::size_t bytes) noexcept {
  ++tensorgrad::testing::allocated;
  return __libc_realloc(memory, bytes);
}
[[gnu::noinline]] void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  ++tensorgrad::testing::allocated;
  return __libc_memalign(alignment, bytes);
}
[[gnu::noinline]] void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  ++tensorgrad::testing::allocated;
  return __libc_memalign(alignment, bytes);
}
[[gnu::noinline]] int posix_memalign(void** memory, std::size_t alignment,
                                     std::size_t bytes) noexcept {
  ++tensorgrad::testing::allocated;
  void* made = __libc_memalign(alignment, bytes);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}

}  // extern "C"

#endif
