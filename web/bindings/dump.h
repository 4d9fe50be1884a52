// SPDX-License-Identifier: MIT
// What a program consists of: the files that compiling writes (TENSORGRAD_DUMP), in memory.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace tensorgrad::web {

// Calls `compile`, which compiles one program. Returns the files that it writes, by their paths in
// the folder of the program, for example "kernels/003_gelu.wgsl".
std::map<std::string, std::string> dumped(const std::function<void()>& compile);

}  // namespace tensorgrad::web
