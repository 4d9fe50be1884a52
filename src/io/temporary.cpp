// SPDX-License-Identifier: MIT
#include "io/temporary.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "base/open_file.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

constexpr int kMaxTemporaries = 1 << 20;

// Closes the file on destruction.
struct OpenFile {
  int fd;
  explicit OpenFile(int opened) : fd(opened) {}
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
};

// Sets errno to EAGAIN if another process has removed the folder as a stale one.
int create_temporary(const std::string& path, bool folder) {
  if (!folder) return open_file(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0666);
  if (::mkdir(path.c_str(), 0777) != 0) return -1;
  const int fd = open_file(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) errno = EAGAIN;
  return fd;
}

bool is_there(const std::string& path) {
  struct stat there = {};
  return ::lstat(path.c_str(), &there) == 0;
}

// Returns fd -1 and sets errno if the file or folder cannot be created; EEXIST if it is in use.
Temporary make_at(std::string path, bool folder) {
  for (;;) {
    const int fd = create_temporary(path, folder);
    if (fd < 0 && errno == EAGAIN) continue;
    if (fd < 0 && errno == EEXIST) {
      if (remove_if_stale(path)) continue;
      errno = EEXIST;
    }
    if (fd < 0) return {std::move(path), -1};
    const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
    const bool removed = !locked && errno == EWOULDBLOCK;  // another process considers it stale
    if (!removed && is_at(fd, path)) return {std::move(path), fd};
    ::close(fd);
  }
}

}  // namespace

bool is_at(int fd, const std::string& path) {
  struct stat mine = {}, there = {};
  return ::fstat(fd, &mine) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

bool remove_if_stale(const std::string& path) {
  const OpenFile file(open_file(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  if (file.fd < 0) return errno == ENOENT;
  // The owner locks what it creates, and then checks that it still exists.
  if (::flock(file.fd, LOCK_EX | LOCK_NB) != 0) return false;
  std::error_code error;
  if (is_at(file.fd, path)) std::filesystem::remove_all(path, error);
  return !error;
}

Temporary make_temporary(const std::string& path, bool folder) {
  const auto name = [&](int i) { return path + ".tmp." + std::to_string(i); };
  for (int i = 0; i < kMaxTemporaries; ++i) {
    Temporary made = make_at(name(i), folder);
    if (made.fd < 0 && errno == EEXIST) continue;
    if (made.fd < 0) return made;
    try {  // left by killed processes that wrote concurrently
      for (int next = i + 1; is_there(name(next)) && remove_if_stale(name(next));) ++next;
    } catch (const std::bad_alloc&) {  // the next writer does it
    }
    return made;
  }
  return {};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
