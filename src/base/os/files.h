// SPDX-License-Identifier: MIT
// Files of the operating system, by descriptors. Paths are UTF-8. A function that fails returns -1,
// false or nothing, and sets errno.
//
// A lock excludes other processes until its descriptor is closed. POSIX systems lock the open file
// (flock); on a file system without locks, nothing is locked. Windows refuses others to open it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::os {

// Opens the null device on each of the descriptors 0 to 2 that is closed. Otherwise the next file
// would be opened there, and what the program prints would be written into it.
void occupy_standard_streams();

enum class Open {
  kRead,    // a file, or whatever there is; does not wait for the writer of a pipe
  kAppend,  // an existing file, also for reading; writes go to its end
  kNew,     // a new file, for appending; EEXIST if there is one
  kEmpty,   // a file without its content, or a new one, for writing
};

// Opens a file. The descriptor is above 2, and programs that this one starts do not inherit it.
int open_file(const std::string& path, Open how);

enum class FileKind { kFile, kFolder, kOther };
struct FileInfo {
  FileKind kind = FileKind::kOther;
  std::uint64_t bytes = 0;
};
std::optional<FileInfo> file_info(int fd);

// Returns the number of bytes read, which is 0 at the end of the file.
std::ptrdiff_t read_at(int fd, std::uint64_t offset, std::span<std::byte> out);
// Writes all of `bytes`. Returns 0 or the errno value.
int write_all(int fd, std::span<const std::byte> bytes);
bool truncate(int fd, std::uint64_t bytes);
// Makes the content durable. Not an error: a file system that cannot do that.
bool sync_file(int fd);
// Makes a rename to `path` durable, if the file system can do that.
void sync_folder_of(const std::string& path);
bool close_file(int fd);

// Creates a file, open for appending, or a folder, and locks it. EEXIST: there is one. EAGAIN:
// another process took it for a stale one and removed it.
int create_locked(const std::string& path, bool folder);
// Opens a file, created if needed, for reading and writing, and locks it. EWOULDBLOCK: it is
// locked.
int open_locked(const std::string& path);
// Returns whether nothing is at the path any more, or removes the file or folder there, unless it
// is locked.
bool remove_if_unlocked(const std::string& path);
// Returns whether the open file is the one at the path.
bool is_at(int fd, const std::string& path);

// These take a locked file or folder at `path`. The first two close it.
void remove_locked_file(int fd, const std::string& path);
void remove_locked_folder(int fd, const std::string& path);
// Replaces a file at `to`, or an empty folder.
bool rename_locked(int fd, const std::string& path, const std::string& to);
// Ends the lock of a file open for appending. Returns the descriptor to append with.
int unlock(int fd, const std::string& path);

// Holds off other objects of the same path, of any process, and waits for them. For a file that
// others replace meanwhile.
class WaitingLock {
 public:
  // If the file cannot be created, failed() and errno say so.
  explicit WaitingLock(const std::string& path);
  ~WaitingLock();
  WaitingLock(const WaitingLock&) = delete;
  WaitingLock& operator=(const WaitingLock&) = delete;
  [[nodiscard]] bool failed() const { return fd_ < 0; }

 private:
  int fd_ = -1;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::os
