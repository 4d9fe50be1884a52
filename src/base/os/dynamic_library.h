// SPDX-License-Identifier: MIT
// Libraries that are loaded at run time. Paths are UTF-8.
#pragma once

#include <filesystem>
#include <string>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {

// Returns an already loaded library with this path or name, or, without one, the process itself.
void* loaded_library(const char* path);
// Returns null, and sets `error`, if the library cannot be loaded. Libraries are never unloaded.
void* open_library(const std::string& path, std::string& error);
void* find_symbol(void* library, const char* name);
// Returns an empty path if the system does not say.
std::filesystem::path executable_folder();

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
