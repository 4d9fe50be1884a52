// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>

#include "base/os/process.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {

int process_id() { return ::getpid(); }

std::string host_name() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return known ? name.data() : "localhost";
}

int allowed_cores() {
#if defined(__linux__)
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
#endif
  return 0;
}

#if defined(__EMSCRIPTEN__)
void call_after_fork(void (* /*call*/)()) {}
#else
void call_after_fork(void (*call)()) { ::pthread_atfork(nullptr, nullptr, call); }
#endif

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
