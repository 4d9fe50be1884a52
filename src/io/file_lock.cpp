// SPDX-License-Identifier: MIT
// Lock files with the process id of their holder, and atomically created folders.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/open_file.h"
#include "io/atomic_file.h"
#include "io/temporary.h"
#include "io/text.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Opens and locks the file. Returns nullopt if another process has removed it in the meantime.
std::optional<int> lock_file(const std::string& path, const std::string& user) {
  const int fd = open_file(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (fd < 0) throw IoError(path + ": cannot be written: " + io::system_error_text(errno));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    char text[32] = {};
    const ssize_t n = ::pread(fd, text, sizeof text - 1, 0);
    ::close(fd);
    const std::string pid(text, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    throw IoError(user + ": in use by " +
                  (pid.empty() ? "another process" : "process " + pid.substr(0, pid.find('\n'))));
  }
  // On file systems without locks, such as some network file systems, nothing is locked.
  if (io::is_at(fd, path)) return fd;
  ::close(fd);
  return std::nullopt;
}

}  // namespace

FileLock::FileLock(const std::string& path, const std::string& user) : path_(path) {
  for (std::optional<int> fd; !fd;) {
    fd = lock_file(path, user.empty() ? path : user);
    fd_ = fd.value_or(-1);
  }
  const std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd_, 0) == 0)
    io::write_all(fd_, std::as_bytes(std::span(text.data(), text.size())));
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  // Unlink while locked: another process that has opened the file then sees that it was removed.
  if (io::is_at(fd_, path_)) ::unlink(path_.c_str());
  ::close(fd_);
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
  std::error_code ignored;
  if (!renamed_) std::filesystem::remove_all(path_, ignored);
  ::close(fd_);
}

void TemporaryFolder::rename(const std::string& to) {
  io::sync_file(fd_);
  if (::rename(path_.c_str(), to.c_str()) != 0)
    throw IoError(for_ + ": cannot be created: " + io::system_error_text(errno));
  renamed_ = true;
  io::sync_folder_of(to);
}

void remove_stale_temporaries(const std::string& folder,
                              const std::function<bool(const std::string&)>& is_ours) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    const std::size_t at = name.rfind(".tmp.");
    if (at != std::string::npos && is_ours(name.substr(0, at)))
      found.push_back(entry->path().string());
  }
  for (const std::string& path : found) io::remove_if_stale(path);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
