// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/os/files.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {
namespace {

constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;  // Linux, macOS: up to 2 GiB per call
constexpr mode_t kAnyone = 0666;                            // less the umask

// Like open() with O_CLOEXEC, but never returns a descriptor below 3.
int open_above(const std::string& path, int flags) {
  occupy_standard_streams();
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, kAnyone);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  // Needed if there is no /dev/null, as in some chroots.
  const int above = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int code = errno;
  ::close(fd);
  errno = code;
  return above;
}

// O_NONBLOCK: opening a pipe must not wait for its writer. It has no effect on files.
int flags_of(Open how) {
  switch (how) {
    case Open::kRead: return O_RDONLY | O_NONBLOCK;
    case Open::kAppend: return O_RDWR | O_APPEND;
    case Open::kNew: return O_WRONLY | O_CREAT | O_EXCL | O_APPEND;
    case Open::kEmpty: return O_WRONLY | O_CREAT | O_TRUNC;
  }
  return O_RDONLY;
}

// Sets errno to EAGAIN if another process has removed the folder as a stale one.
int create(const std::string& path, bool folder) {
  if (!folder) return open_file(path, Open::kNew);
  if (::mkdir(path.c_str(), 0777) != 0) return -1;
  const int fd = open_above(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) errno = EAGAIN;
  return fd;
}

// On macOS, fsync() leaves the content in the drive's cache. File systems without F_FULLFSYNC, such
// as those of networks, have only fsync().
bool flush(int fd) {
#ifdef F_FULLFSYNC
  if (::fcntl(fd, F_FULLFSYNC) == 0) return true;
#endif
  return ::fsync(fd) == 0;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

}  // namespace

void occupy_standard_streams() {
  for (int stream = 0; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // Stays open, because another thread may open a file at any time.
    const int fd = ::open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO) ::close(fd);  // another thread was faster
  }
}

int open_file(const std::string& path, Open how) { return open_above(path, flags_of(how)); }

std::optional<FileInfo> file_info(int fd) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return std::nullopt;
  const FileKind kind = S_ISREG(info.st_mode)   ? FileKind::kFile
                        : S_ISDIR(info.st_mode) ? FileKind::kFolder
                                                : FileKind::kOther;
  return FileInfo{kind, static_cast<std::uint64_t>(info.st_size)};
}

std::ptrdiff_t read_at(int fd, std::uint64_t offset, std::span<std::byte> out) {
  const std::size_t size = std::min(out.size(), kMaxTransfer);
  ssize_t n = 0;
  do {
    n = ::pread(fd, out.data(), size, static_cast<off_t>(offset));
  } while (n < 0 && errno == EINTR);
  return n;
}

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

bool truncate(int fd, std::uint64_t bytes) {
  return ::ftruncate(fd, static_cast<off_t>(bytes)) == 0;
}

// EINVAL, on macOS ENOTSUP: a file system without sync, such as that of pipes.
bool sync_file(int fd) {
  return flush(fd) || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int fd = open_above(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (fd < 0) return;
  flush(fd);
  ::close(fd);
}

bool close_file(int fd) { return ::close(fd) == 0 || errno == EINTR; }

int create_locked(const std::string& path, bool folder) {
  const int fd = create(path, folder);
  if (fd < 0) return -1;
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  const bool removed = !locked && errno == EWOULDBLOCK;  // another process considers it stale
  if (!removed && is_at(fd, path)) return fd;
  ::close(fd);
  errno = EAGAIN;
  return -1;
}

int open_locked(const std::string& path) {
  for (;;) {
    const int fd = open_above(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return -1;
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(fd);
      errno = EWOULDBLOCK;
      return -1;
    }
    if (is_at(fd, path)) return fd;
    ::close(fd);  // another process has removed it in the meantime
  }
}

bool remove_if_unlocked(const std::string& path) {
  const int fd = open_above(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return errno == ENOENT;
  // The owner locks what it creates, and then checks that it still exists.
  std::error_code error;
  const bool mine = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (mine && is_at(fd, path)) std::filesystem::remove_all(path, error);
  ::close(fd);
  return mine && !error;
}

bool is_at(int fd, const std::string& path) {
  struct stat mine = {}, there = {};
  return ::fstat(fd, &mine) == 0 && ::lstat(path.c_str(), &there) == 0 && same_file(mine, there);
}

// Removed while locked: afterwards, another process may use the name.
void remove_locked_file(int fd, const std::string& path) {
  ::unlink(path.c_str());
  ::close(fd);
}

void remove_locked_folder(int fd, const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  ::close(fd);
}

bool rename_locked(int /*fd*/, const std::string& path, const std::string& to) {
  return ::rename(path.c_str(), to.c_str()) == 0;
}

int unlock(int fd, const std::string& /*path*/) {
  ::flock(fd, LOCK_UN);
  return fd;
}

// On file systems without locks, nothing is locked.
WaitingLock::WaitingLock(const std::string& path) {
  for (bool taken = false; !taken;) {
    fd_ = open_above(path, O_RDWR | O_CREAT | O_NONBLOCK);
    if (fd_ < 0) return;
    int held = 0;
    do {
      held = ::flock(fd_, LOCK_EX);
    } while (held != 0 && errno == EINTR);
    // Otherwise another process replaced the file while this one waited.
    struct stat mine = {}, there = {};
    taken = held != 0 || (::fstat(fd_, &mine) == 0 && ::stat(path.c_str(), &there) == 0 &&
                          same_file(mine, there));
    if (!taken) ::close(fd_);
  }
}

WaitingLock::~WaitingLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
