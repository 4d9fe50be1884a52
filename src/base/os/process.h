// SPDX-License-Identifier: MIT
// This process and its machine.
#pragma once

#include <string>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {

int process_id();
// Returns the name of the machine; "localhost" if it has none.
std::string host_name();
// Returns the model of the processor; "CPU" if the system does not say.
std::string processor_name();
// Returns the number of cores that this process may use; 0 if the system does not say.
int allowed_cores();
// Has `call` called in processes that fork from this one. Nothing on systems without fork.
void call_after_fork(void (*call)());

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
