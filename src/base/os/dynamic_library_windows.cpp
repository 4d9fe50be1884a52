// SPDX-License-Identifier: MIT
#include "base/os/dynamic_library.h"
#include "base/os/wide.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {

void* loaded_library(const char* path) {
  return ::GetModuleHandleW(path == nullptr ? nullptr : wide(path).c_str());
}

void* open_library(const std::string& path, std::string& error) {
  void* const library = ::LoadLibraryW(wide(path).c_str());
  if (library == nullptr) error = "cannot be loaded: error " + std::to_string(::GetLastError());
  return library;
}

void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(::GetProcAddress(static_cast<HMODULE>(library), name));
}

std::filesystem::path executable_folder() {
  std::wstring path(1 << 15, L'\0');  // the longest path
  path.resize(::GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  return std::filesystem::path(path).parent_path();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
