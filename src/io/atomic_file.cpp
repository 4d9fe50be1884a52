// SPDX-License-Identifier: MIT
// Atomically written files, and line-by-line logs.
#include "io/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/os/files.h"
#include "base/path.h"
#include "io/temporary.h"
#include "io/text.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace io {
namespace {

// Returns the file that a write to `path` replaces: follows symbolic links, rejects anything but
// regular files.
std::string resolve_target(const std::string& path) {
  std::error_code code;
  const std::filesystem::path file = utf8_path(path);
  const std::filesystem::file_status status = std::filesystem::status(file, code);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw IoError(path + ": cannot be written: it exists and is not a regular file");
  }
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(file, code))) return path;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(file, code);
  if (code) {
    throw IoError(
        path + ": cannot be written: " + system_error_text(code.default_error_condition().value()));
  }
  return utf8_text(resolved);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(resolve_target(path)) {
  Temporary made = make_temporary(target_, false);
  if (made.fd < 0) fail("cannot be written", errno);
  temporary_ = std::move(made.path);
  fd_ = made.fd;
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  if (committed_) {
    os::close_file(fd_);
  } else {
    os::remove_locked_file(fd_, temporary_);
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (const int code = os::write_all(fd_, bytes)) fail("cannot be written", code);
}

void AtomicFile::commit() {
  sync_and_rename();
  const int fd = std::exchange(fd_, -1);
  if (!os::close_file(fd)) fail("cannot be closed", errno);
}

int AtomicFile::commit_and_release() {
  sync_and_rename();
  const int fd = os::unlock(std::exchange(fd_, -1), target_);
  if (fd < 0) fail("cannot be opened", errno);
  return fd;
}

void AtomicFile::sync_and_rename() {
  if (!os::sync_file(fd_)) fail("cannot be synced", errno);
  if (!os::rename_locked(fd_, temporary_, target_)) fail("cannot be replaced", errno);
  committed_ = true;
  os::sync_folder_of(target_);
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
  const int fd = os::open_file(path, os::Open::kAppend);
  if (fd < 0) return fd;
  const std::optional<os::FileInfo> info = os::file_info(fd);
  const std::uint64_t end = info ? info->bytes : 0;
  std::uint64_t keep = end;
  char block[4096];
  while (keep > 0) {
    const std::uint64_t from = keep - std::min<std::uint64_t>(keep, sizeof block);
    const auto size = static_cast<std::size_t>(keep - from);
    const std::ptrdiff_t n = os::read_at(fd, from, std::as_writable_bytes(std::span(block, size)));
    if (n != static_cast<std::ptrdiff_t>(size)) break;
    std::size_t i = size;
    while (i > 0 && block[i - 1] != '\n') --i;
    keep = from + i;
    if (i > 0) break;
  }
  if (!info || (keep < end && !os::truncate(fd, keep))) {
    const int code = errno;
    os::close_file(fd);
    errno = code;
    return -1;
  }
  return fd;
}

}  // namespace

LineLog::LineLog(const std::string& path, Open how) : path_(path) {
  std::error_code ignored;
  const std::filesystem::path file = utf8_path(path);
  if (how == Open::kAppend && std::filesystem::exists(file, ignored)) {
    if (!std::filesystem::is_regular_file(file, ignored)) {
      throw IoError(path + ": cannot be written: it exists and is not a regular file");
    }
    fd_ = open_log_for_append(path);
    if (fd_ < 0) throw IoError(path + ": cannot be opened: " + io::system_error_text(errno));
    return;
  }
  fd_ = io::AtomicFile(path).commit_and_release();
}

LineLog::~LineLog() {
  if (fd_ >= 0) os::close_file(fd_);
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
  if (const int code = os::write_all(fd_, std::as_bytes(std::span(text.data(), text.size())))) {
    throw IoError(path_ + ": cannot be written: " + io::system_error_text(code));
  }
}

void LineLog::sync() {
  if (!os::sync_file(fd_))
    throw IoError(path_ + ": cannot be synced: " + io::system_error_text(errno));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
