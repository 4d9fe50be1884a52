// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "base/os/dynamic_library.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {
namespace {

#ifdef __APPLE__
// Returns the path of the loaded library with this file name, or `path` if there is none. macOS
// finds a loaded library by its path or install name only, Linux also by its file name.
std::string path_of_loaded(const char* path) {
  const std::string_view name = path;
  if (name.find('/') != std::string_view::npos) return path;
  for (std::uint32_t i = 0; i < _dyld_image_count(); ++i) {
    const char* const loaded = _dyld_get_image_name(i);  // null if unloaded meanwhile
    if (loaded != nullptr && std::filesystem::path(loaded).filename() == name) return loaded;
  }
  return path;
}
#else
std::string path_of_loaded(const char* path) { return path; }
#endif

}  // namespace

void* loaded_library(const char* path) {
  if (path == nullptr) return ::dlopen(nullptr, RTLD_NOW);
  return ::dlopen(path_of_loaded(path).c_str(), RTLD_NOW | RTLD_NOLOAD);
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
  std::error_code error;
#ifdef __APPLE__
  std::uint32_t size = 0;
  _NSGetExecutablePath(nullptr, &size);
  std::string started(size, '\0');  // the path may contain symbolic links
  if (_NSGetExecutablePath(started.data(), &size) != 0) return {};
  const std::filesystem::path path = std::filesystem::canonical(started.c_str(), error);
#else
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
#endif
  return error ? std::filesystem::path() : path.parent_path();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
