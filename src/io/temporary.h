// SPDX-License-Identifier: MIT
// Temporary files and folders, locked while in use. The next writer can thus recognize and remove
// those of killed processes.
#pragma once

#include <string>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

struct Temporary {
  std::string path;
  int fd = -1;  // holds the lock; a file is open for appending
};

// Creates the file or folder PATH.tmp.N with the smallest N that is not in use. Removes those left
// by killed processes, unless the file system has no locks. Returns fd -1 and sets errno if it
// cannot be created.
Temporary make_temporary(const std::string& path, bool folder);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
