// SPDX-License-Identifier: MIT
// Reading files, writing them atomically, and line logs.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// Returns the content of a text file, decompressed if it begins with the magic number of gzip.
/// Throws IoError as read_file(), if the compressed data is damaged, or if the text has more than
/// `max_bytes` bytes.
std::string read_text_file(const FileSource& source, std::uint64_t max_bytes = UINT64_MAX);

/// Writes a file atomically: a reader sees the old file or the complete new one. Writes to
/// PATH.tmp.PID.N in the same folder, syncs it and renames it. A symbolic link is followed. Throws
/// IoError if the path cannot be written, or exists and is not a regular file.
void write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::string& path, std::string_view text);

/// Append-only text file with one record per line, for example `metrics.jsonl`. Each line is passed
/// to the system in one write, so that a crash loses at most the line being written. Movable.
class LineLog {
 public:
  /// How a log is opened.
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

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
