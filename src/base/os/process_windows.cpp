// SPDX-License-Identifier: MIT
#include <bit>

#include "base/os/process.h"
#include "base/os/wide.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {

int process_id() { return static_cast<int>(::GetCurrentProcessId()); }

std::string host_name() {
  wchar_t name[256] = {};
  DWORD size = 256;
  if (!::GetComputerNameExW(ComputerNameDnsHostname, name, &size) || size == 0) return "localhost";
  return utf8_text(name);
}

std::string processor_name() { return "CPU"; }

int allowed_cores() {
  DWORD_PTR allowed = 0, machine = 0;
  if (!::GetProcessAffinityMask(::GetCurrentProcess(), &allowed, &machine)) return 0;
  return std::popcount(allowed);  // 0: the process is in several groups of 64
}

void call_after_fork(void (* /*call*/)()) {}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
