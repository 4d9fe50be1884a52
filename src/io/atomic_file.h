// SPDX-License-Identifier: MIT
// A file that appears whole or not at all: written beside its place, synced, renamed.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// Writes go to path.tmp.N until commit(); without commit() the destructor removes that file and
// what was at `path` stays. Throws IoError. POSIX only.
class AtomicFile {
 public:
  // IoError if `path` exists and is not a regular file, or if its folder cannot be written.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  // Syncs, renames and syncs the folder. Nothing may be written afterwards.
  void commit();
  // As commit(), but keeps the descriptor open at the end of the file and gives it to the caller.
  int commit_and_release();

 private:
  void sync_and_rename();
  [[noreturn]] void fail(const char* action, int code) const;

  std::string path_;    // as the user gave it, for messages
  std::string target_;  // with symbolic links followed
  std::string temporary_;
  int fd_ = -1;
  bool committed_ = false;
};

// Writes all of `bytes` to a descriptor; returns 0 or the errno value.
int write_all(int fd, std::span<const std::byte> bytes);

// Makes a file durable. Returns false and sets errno if that fails.
bool sync_file(int fd);
// Makes a rename to `path` durable.
void sync_folder_of(const std::string& path);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
