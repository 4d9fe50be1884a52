// SPDX-License-Identifier: MIT
// Lock files with the process id of their holder, and atomically created folders.
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/os/files.h"
#include "base/os/process.h"
#include "base/path.h"
#include "io/temporary.h"
#include "io/text.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Returns what a lock file says of its owner.
std::string owner_of(const std::string& path) {
  char text[32] = {};
  const int fd = os::open_file(path, os::Open::kRead);
  if (fd >= 0) {
    os::read_at(fd, 0, std::as_writable_bytes(std::span(text, sizeof text - 1)));
    os::close_file(fd);
  }
  const std::string pid(text);
  return pid.empty() ? "another process" : "process " + pid.substr(0, pid.find('\n'));
}

}  // namespace

FileLock::FileLock(const std::string& path, const std::string& user)
    : path_(path), fd_(os::open_locked(path)) {
  if (fd_ < 0 && errno == EWOULDBLOCK)
    throw IoError((user.empty() ? path : user) + ": in use by " + owner_of(path));
  if (fd_ < 0) throw IoError(path + ": cannot be written: " + io::system_error_text(errno));
  const std::string text = std::to_string(os::process_id()) + "\n";
  if (os::truncate(fd_, 0)) os::write_all(fd_, std::as_bytes(std::span(text.data(), text.size())));
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  // Another process that has opened the file sees that it was removed while locked.
  if (os::is_at(fd_, path_)) {
    os::remove_locked_file(fd_, path_);
  } else {
    os::close_file(fd_);
  }
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

TemporaryFolder::TemporaryFolder(const std::string& path) : for_(path) {
  if (for_.ends_with('/')) for_.pop_back();
  io::Temporary made = io::make_temporary(path, true);
  if (made.fd < 0) throw IoError(path + ": cannot be created: " + io::system_error_text(errno));
  path_ = std::move(made.path);
  fd_ = made.fd;
}

TemporaryFolder::~TemporaryFolder() {
  if (!renamed_) os::remove_locked_folder(fd_, path_);
}

void TemporaryFolder::rename(const std::string& to) {
  os::sync_file(fd_);
  if (!os::rename_locked(fd_, path_, to))
    throw IoError(for_ + ": cannot be created: " + io::system_error_text(errno));
  renamed_ = true;
  os::close_file(std::exchange(fd_, -1));  // others may use it from now on
  os::sync_folder_of(to);
}

void remove_stale_temporaries(const std::string& folder,
                              const std::function<bool(const std::string&)>& is_ours) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(utf8_path(folder), ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    const std::string name = utf8_text(entry->path().filename());
    const std::size_t at = name.rfind(".tmp.");
    if (at != std::string::npos && is_ours(name.substr(0, at)))
      found.push_back(utf8_text(entry->path()));
  }
  for (const std::string& path : found) os::remove_if_unlocked(path);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
