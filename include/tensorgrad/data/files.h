// SPDX-License-Identifier: MIT
// Files: reading, atomic writing, and line logs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// The whole of a regular file. IoError: missing, not a regular file, or longer than `max_bytes`.
std::vector<std::byte> read_file(const std::string& path, std::uint64_t max_bytes = UINT64_MAX);

// The same, inflated if it is gzipped, which its first bytes tell; then no longer than `max_bytes`.
std::string read_text_file(const std::string& path, std::uint64_t max_bytes = UINT64_MAX);

// Writes beside (path.tmp.PID.N), syncs and renames: a reader sees the old file or the whole new
// one. An existing path must be a regular file; a symbolic link is followed.
void write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::string& path, std::string_view text);

// An append-only text file, one record a line, as metrics.jsonl. Each line reaches the system in
// one write, so that a crash loses at most the line being written.
class LineLog {
 public:
  enum class Open {
    kCreate,  // an empty file replaces what is there
    kAppend,  // goes on; a last line that a crash cut short is dropped. Created if missing
  };

  LineLog(const std::string& path, Open how);
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;
  LineLog(LineLog&& other) noexcept;
  LineLog& operator=(LineLog&& other) noexcept;

  // Appends `line` and a newline; the line itself must hold none.
  void write(std::string_view line);

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
