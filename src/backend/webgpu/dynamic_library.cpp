// SPDX-License-Identifier: MIT
// Finds and opens a WebGPU library. If a path is given, tries only that. Otherwise, if
// TENSORGRAD_WEBGPU_LIB is set, tries only that. Otherwise tries the folder of the executable,
// ../lib/tensorgrad, the install and build paths, and the plain names.
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "backend/webgpu/api.h"
#include "backend/webgpu/process.h"
#include "backend/webgpu/vendor.h"
#include "base/env.h"
#include "base/os/dynamic_library.h"
#include "base/os/files.h"
#include "base/path.h"

namespace tensorgrad::webgpu {
namespace {

#if defined(_WIN32)
constexpr const char* kNames[] = {"wgpu_native-release.dll", "wgpu_native.dll", "webgpu_dawn.dll"};
#elif defined(__APPLE__)
constexpr const char* kNames[] = {"libwgpu_native-release.dylib", "libwgpu_native.dylib",
                                  "libwebgpu_dawn.dylib"};
#else
constexpr const char* kNames[] = {"libwgpu_native-release.so", "libwgpu_native.so",
                                  "libwebgpu_dawn.so"};
#endif

std::vector<std::string> candidates(const std::string& library) {
  if (!library.empty()) return {library};
  const std::string wish = env("TENSORGRAD_WEBGPU_LIB");
  if (!wish.empty()) return {wish};
  std::vector<std::string> paths;
  const std::filesystem::path here = os::executable_folder();
  for (const std::filesystem::path& folder : {here, here.parent_path() / "lib" / "tensorgrad"}) {
    for (const char* name : kNames) {
      const std::filesystem::path path = folder / name;
      std::error_code error;
      if (std::filesystem::is_regular_file(path, error)) paths.push_back(utf8_text(path));
    }
  }
#ifdef TENSORGRAD_WGPU_INSTALL_PATH
  paths.emplace_back(TENSORGRAD_WGPU_INSTALL_PATH);
#endif
#ifdef TENSORGRAD_WGPU_BUILD_PATH
  paths.emplace_back(TENSORGRAD_WGPU_BUILD_PATH);
#endif
  paths.insert(paths.end(), std::begin(kNames), std::end(kNames));
  return paths;
}

// Fills the whole table. On failure returns false, and `missing` is the first missing function.
bool fill(Api& api, void* library, std::string& missing) {
#define TENSORGRAD_WEBGPU_FIND(name)                                                   \
  api.name = reinterpret_cast<WGPUProc##name>(os::find_symbol(library, "wgpu" #name)); \
  if (api.name == nullptr && missing.empty()) missing = "wgpu" #name;
  TENSORGRAD_WEBGPU_FUNCTIONS(TENSORGRAD_WEBGPU_FIND)
#undef TENSORGRAD_WEBGPU_FIND
  return missing.empty();
}

// Returns the function table of a loaded library, or null if a function is missing.
std::unique_ptr<Api> load_functions(void* library, const std::string& path, std::string& error) {
  auto api = std::make_unique<Api>();
  std::string missing;
  if (!fill(*api, library, missing)) {
    error = path + " has no " + missing;
    return nullptr;
  }
  api->path = path;
  api->vendor = Vendor::detect(library, os::find_symbol);
  return api;
}

// A library of this process. Nothing of it is destroyed, because devices may outlive static
// objects.
struct Library {
  std::unique_ptr<Api> api;
  std::vector<const Api*> idle;  // copies of `api` with instances that no device uses
};

std::mutex& libraries_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

// Returns the functions with an instance as load_api() describes it. The caller holds the mutex.
std::shared_ptr<const Api> take(Library& library) {
  if (library.api->vendor->concurrent()) return {std::shared_ptr<void>(), library.api.get()};
  const Api* api = nullptr;
  if (!library.idle.empty()) {
    api = library.idle.back();
    library.idle.pop_back();
  } else {
    auto made = std::make_unique<Api>(*library.api);
    made->instance = made->vendor->create_instance(*made);
    api = made.release();
  }
  return {api, [&library](const Api* unused) {
            if (forked()) return;  // another thread of the parent may have held the mutex
            const std::lock_guard lock(libraries_mutex());
            library.idle.push_back(unused);
          }};
}

std::shared_ptr<const Api> try_load(const std::string& path, std::string& error) {
  static auto& libraries = *new std::map<std::string, Library>;
  watch_forks();
  const std::lock_guard lock(libraries_mutex());
  const auto known = libraries.find(path);
  if (known != libraries.end()) return take(known->second);
  os::occupy_standard_streams();  // drivers open files, such as shader caches
  void* library = os::open_library(path, error);
  if (library == nullptr) return nullptr;
  std::unique_ptr<Api> api = load_functions(library, path, error);
  if (api == nullptr) return nullptr;
  if (api->vendor->concurrent()) api->instance = api->vendor->create_instance(*api);
  Library& fresh = libraries[path];
  fresh.api = std::move(api);
  return take(fresh);
}

}  // namespace

std::unique_ptr<Api> find_loaded_api(const std::string& library, std::string& reason) {
  if (forked()) {
    reason = kForkedText;
    return nullptr;
  }
  watch_forks();
  if (!library.empty()) {
    void* found = os::loaded_library(library.c_str());
    if (found != nullptr) return load_functions(found, library, reason);
    reason = library + " is not loaded in this process, so the device cannot belong to it";
    return nullptr;
  }
  void* process = os::loaded_library(nullptr);
  if (process != nullptr && os::find_symbol(process, "wgpuCreateInstance") != nullptr)
    return load_functions(process, "the process", reason);
  for (const char* name : kNames) {
    if (void* found = os::loaded_library(name)) return load_functions(found, name, reason);
  }
  reason =
      "cannot find the library of the application's device: the process is not linked to it; "
      "set DeviceOptions::webgpu_library to its path";
  return nullptr;
}

std::shared_ptr<const Api> load_api(const std::string& library, std::string& reason) {
  if (forked()) {
    reason = kForkedText;
    return nullptr;
  }
  std::string tried;
  for (const std::string& path : candidates(library)) {
    std::string error;
    if (auto api = try_load(path, error)) return api;
    // The dynamic loader's message usually begins with the path.
    const bool named = error.find(path) != std::string::npos;
    tried += "\n    " + (named ? error : path + ": " + error);
  }
  reason = "no WebGPU library could be loaded; tried:" + tried +
           "\n  set TENSORGRAD_WEBGPU_LIB to a libwgpu_native or libwebgpu_dawn; one is inside the "
           "Python wheel `wgpu` (pip download wgpu)";
  return nullptr;
}

}  // namespace tensorgrad::webgpu
