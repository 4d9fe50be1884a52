// SPDX-License-Identifier: MIT
// Atomically written files, and line-by-line logs.
#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "base/open_file.h"
#include "io/temporary.h"
#include "io/text.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace io {
namespace {

constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;  // Linux limit: 2 GiB per call

// Returns the file that a write to `path` replaces: follows symbolic links, rejects anything but
// regular files.
std::string resolve_target(const std::string& path) {
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::status(path, code);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw IoError(path + ": cannot be written: it exists and is not a regular file");
  }
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, code))) return path;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, code);
  if (code) throw IoError(path + ": cannot be written: " + system_error_text(code.value()));
  return resolved.string();
}

}  // namespace

// Some file systems cannot sync a folder; this is not an error.
void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int fd = open_file(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

// EINVAL: a file system without sync, such as that of pipes.
bool sync_file(int fd) { return ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS; }

int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), std::min(bytes.size(), kMaxTransfer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(resolve_target(path)) {
  Temporary made = make_temporary(target_, false);
  if (made.fd < 0) fail("cannot be written", errno);
  temporary_ = std::move(made.path);
  fd_ = made.fd;
}

AtomicFile::~AtomicFile() {
  // Unlink while locked: afterwards, another process may use the name.
  if (!committed_ && !temporary_.empty()) ::unlink(temporary_.c_str());
  if (fd_ >= 0) ::close(fd_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (const int code = write_all(fd_, bytes)) fail("cannot be written", code);
}

void AtomicFile::commit() {
  sync_and_rename();
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0 && errno != EINTR) fail("cannot be closed", errno);
}

int AtomicFile::commit_and_release() {
  sync_and_rename();
  ::flock(fd_, LOCK_UN);
  return std::exchange(fd_, -1);
}

void AtomicFile::sync_and_rename() {
  if (!sync_file(fd_)) fail("cannot be synced", errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be replaced", errno);
  committed_ = true;
  sync_folder_of(target_);
}

void AtomicFile::fail(const char* action, int code) const {
  throw IoError(path_ + ": " + action + ": " + system_error_text(code));
}

}  // namespace io

void write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  io::AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file_atomically(const std::string& path, std::string_view text) {
  write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

namespace {

// Opens a log for appending. Drops an incomplete last line, left by a crash.
int open_log_for_append(const std::string& path) {
  const int fd = open_file(path.c_str(), O_RDWR | O_APPEND);
  if (fd < 0) return fd;
  off_t end = ::lseek(fd, 0, SEEK_END);
  off_t keep = end;
  char block[4096];
  while (keep > 0) {
    const off_t from = std::max<off_t>(0, keep - static_cast<off_t>(sizeof block));
    const ssize_t n = ::pread(fd, block, static_cast<std::size_t>(keep - from), from);
    if (n != keep - from) break;
    off_t i = n;
    while (i > 0 && block[i - 1] != '\n') --i;
    keep = from + i;
    if (i > 0) break;
  }
  if (keep >= 0 && keep < end && ::ftruncate(fd, keep) != 0) {
    const int code = errno;
    ::close(fd);
    errno = code;
    return -1;
  }
  return fd;
}

}  // namespace

LineLog::LineLog(const std::string& path, Open how) : path_(path) {
  std::error_code ignored;
  if (how == Open::kAppend && std::filesystem::exists(path, ignored)) {
    if (!std::filesystem::is_regular_file(path, ignored)) {
      throw IoError(path + ": cannot be written: it exists and is not a regular file");
    }
    fd_ = open_log_for_append(path);
    if (fd_ < 0) throw IoError(path + ": cannot be opened: " + io::system_error_text(errno));
    return;
  }
  io::AtomicFile file(path);
  fd_ = file.commit_and_release();
}

LineLog::~LineLog() {
  if (fd_ >= 0) ::close(fd_);
}

LineLog::LineLog(LineLog&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

LineLog& LineLog::operator=(LineLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

void LineLog::write(std::string_view line) {
  if (line.find('\n') != std::string_view::npos) {
    throw IoError(path_ + ": a record must be one line: " + io::in_quotes(line));
  }
  std::string text(line);
  text += '\n';
  if (const int code = io::write_all(fd_, std::as_bytes(std::span(text.data(), text.size())))) {
    throw IoError(path_ + ": cannot be written: " + io::system_error_text(code));
  }
}

void LineLog::sync() {
  if (!io::sync_file(fd_))
    throw IoError(path_ + ": cannot be synced: " + io::system_error_text(errno));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
