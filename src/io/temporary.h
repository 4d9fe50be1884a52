// SPDX-License-Identifier: MIT
// Temporary files and folders, locked while they are used. So those of a killed process are told
// from those in use, and the next writer removes them.
#pragma once

#include <string>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

struct Temporary {
  std::string path;
  int fd = -1;  // holds the lock; of a file, it is open for appending
};

// Creates the file, or the folder, PATH.tmp.N with the least N that is not in use. Removes those
// that killed processes left. If the file system has no locks, nothing is removed. Returns fd -1
// and sets errno if it cannot be created.
Temporary make_temporary(const std::string& path, bool folder);

// Removes a temporary file or folder that no process uses. Returns true if nothing is at the path
// afterwards.
bool remove_if_stale(const std::string& path);

// Returns true if the open file is the one at the path.
bool is_at(int fd, const std::string& path);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
