// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include <cstdint>
#include <system_error>

#include "base/os/dynamic_library.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {

void* loaded_library(const char* path) {
  return path == nullptr ? ::dlopen(nullptr, RTLD_NOW) : ::dlopen(path, RTLD_NOW | RTLD_NOLOAD);
}

void* open_library(const std::string& path, std::string& error) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const text = ::dlerror();
    error = text == nullptr ? "cannot be loaded" : text;
  }
  return library;
}

void* find_symbol(void* library, const char* name) { return ::dlsym(library, name); }

std::filesystem::path executable_folder() {
#ifdef __APPLE__
  char path[4096] = {};
  std::uint32_t size = sizeof path;
  if (_NSGetExecutablePath(path, &size) != 0) return {};
  return std::filesystem::path(path).parent_path();
#else
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : path.parent_path();
#endif
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
