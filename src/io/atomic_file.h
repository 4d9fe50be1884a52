// SPDX-License-Identifier: MIT
// Atomically written files: written to a temporary file in the same folder, synced, then renamed.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// Writes go to path.tmp.N until commit(). Without commit(), the destructor removes that file and
// `path` stays as it was. Throws IoError.
class AtomicFile {
 public:
  // Throws IoError if `path` exists and is not a regular file, or if its folder is not writable.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  // Syncs, renames and syncs the folder. No more writes are allowed.
  void commit();
  // Like commit(), but returns the open descriptor, positioned at the end of the file.
  int commit_and_release();

 private:
  void sync_and_rename();
  [[noreturn]] void fail(const char* action, int code) const;

  std::string path_;    // as passed by the user, for messages
  std::string target_;  // with symbolic links resolved
  std::string temporary_;
  int fd_ = -1;
  bool committed_ = false;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
