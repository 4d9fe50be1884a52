// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

#include <array>
#include <fstream>
#include <string>

#include "base/os/process.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {

int process_id() { return ::getpid(); }

std::string host_name() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return known ? name.data() : "localhost";
}

std::string processor_name() {
#if defined(__linux__)
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.rfind("model name", 0) != 0 || colon == std::string::npos) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    if (start != std::string::npos) return line.substr(start);
  }
#elif defined(__APPLE__)
  std::array<char, 256> name{};  // such as "Apple M1"
  std::size_t size = name.size() - 1;
  const int failed = ::sysctlbyname("machdep.cpu.brand_string", name.data(), &size, nullptr, 0);
  if (failed == 0 && name[0] != '\0') return name.data();
#endif
  return "CPU";
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
