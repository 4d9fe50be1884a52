// SPDX-License-Identifier: MIT
#include "io/temporary.h"

#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "base/os/files.h"
#include "base/path.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

constexpr int kMaxTemporaries = 1 << 20;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(utf8_path(path), ignored));
}

// Returns fd -1 and sets errno if the file or folder cannot be created; EEXIST if it is in use.
Temporary make_at(std::string path, bool folder) {
  for (;;) {
    const int fd = os::create_locked(path, folder);
    if (fd < 0 && errno == EAGAIN) continue;
    if (fd < 0 && errno == EEXIST) {
      if (os::remove_if_unlocked(path)) continue;
      errno = EEXIST;
    }
    return {std::move(path), fd};
  }
}

}  // namespace

Temporary make_temporary(const std::string& path, bool folder) {
  const auto name = [&](int i) { return path + ".tmp." + std::to_string(i); };
  for (int i = 0; i < kMaxTemporaries; ++i) {
    Temporary made = make_at(name(i), folder);
    if (made.fd < 0 && errno == EEXIST) continue;
    if (made.fd < 0) return made;
    try {  // left by killed processes that wrote concurrently
      for (int next = i + 1; is_there(name(next)) && os::remove_if_unlocked(name(next));) ++next;
    } catch (const std::bad_alloc&) {  // the next writer does it
    }
    return made;
  }
  return {};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
