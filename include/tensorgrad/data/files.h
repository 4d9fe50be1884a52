// SPDX-License-Identifier: MIT
// Reading files, writing them atomically, and line logs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns the content of a file, or a copy of bytes in memory. Throws IoError if it cannot be
/// read, is not a regular file or has more than `max_bytes` bytes.
std::vector<std::byte> read_file(const FileSource& source, std::uint64_t max_bytes = UINT64_MAX);

/// Default limit on the expansion of compressed files. Text shrinks by a factor of 3 to 30; gzip
/// can store 1032 equal bytes in one.
inline constexpr double kMaxExpansion = 100;

/// Returns the content of a text file, decompressed if it begins with the magic number of gzip.
/// Throws IoError like read_file(), if the compressed data is damaged, or if the text has more than
/// `max_bytes` bytes. Also throws IoError if it has more than 64 MiB and is more than
/// `max_expansion` times as long as the compressed data.
std::string read_text_file(const FileSource& source, std::uint64_t max_bytes = UINT64_MAX,
                           double max_expansion = kMaxExpansion);

/// Writes a file atomically: a reader sees the old file or the complete new one. Writes to
/// PATH.tmp.N in the same folder, syncs it and renames it, and removes such files of processes that
/// were killed. A symbolic link is followed. Throws IoError if the path cannot be written, or
/// exists and is not a regular file.
void write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::string& path, std::string_view text);

/// Append-only text file with one record per line, for example `metrics.jsonl`. Each line is passed
/// to the system in one write, so that a crash loses at most the line being written. Movable.
class LineLog {
 public:
  /// Mode of opening a log.
  enum class Open {
    kCreate,  ///< Starts with an empty file, which replaces an existing one.
    kAppend,  ///< Continues an existing file, without a last line that a crash cut off.
  };

  /// Opens a log. kAppend creates the file if it does not exist. Throws IoError if the path cannot
  /// be written or is not a regular file.
  LineLog(const std::string& path, Open how);
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  /// Takes over the file of another log.
  LineLog(LineLog&& other) noexcept;
  LineLog& operator=(LineLog&& other) noexcept;

  /// Appends a line and a newline. Throws IoError if `line` contains a newline or cannot be
  /// written.
  void write(std::string_view line);
  /// Makes the lines durable: they survive a crash of the system. Throws IoError if that fails.
  void sync();

 private:
  std::string path_;
  int fd_ = -1;
};

/// Exclusive lock that a process holds until the object is destroyed, or the process ends
/// (`flock`). The file contains the ID of the process. Has no effect on file systems without locks.
/// Movable.
class FileLock {
 public:
  /// Creates and locks a file, which the destructor removes. Throws IoError
  /// "USER: in use by process N" if another object holds the lock, and IoError if the file cannot
  /// be written. USER is the path by default.
  explicit FileLock(const std::string& path, const std::string& user = "");
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// Takes over the lock of another object.
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

 private:
  std::string path_;
  int fd_ = -1;
};

/// Folder that is filled under a temporary name, PATH.tmp.N, and renamed when it is complete. If
/// `path` ends with a slash, the folder is created in `path`.
class TemporaryFolder {
 public:
  /// Creates the folder, and removes such folders of processes that were killed. Throws IoError if
  /// it cannot be created.
  explicit TemporaryFolder(const std::string& path);
  /// Removes the folder, unless it was renamed.
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const {
    return path_;
  }  ///< Path under which it is filled.
  /// Renames the folder. Throws IoError if that fails, as it does if `to` is a file or a folder
  /// that is not empty.
  void rename(const std::string& to);

 private:
  std::string path_;
  std::string for_;
  int fd_ = -1;
  bool renamed_ = false;
};

/// Removes the temporary files and folders NAME.tmp.N in a folder that no process uses, if
/// `is_ours(NAME)` returns true.
void remove_stale_temporaries(const std::string& folder,
                              const std::function<bool(const std::string&)>& is_ours);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
