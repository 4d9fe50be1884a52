// SPDX-License-Identifier: MIT
// Opens files on descriptors above those of the standard streams.
#pragma once

#include <sys/types.h>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Opens /dev/null on each of the descriptors 0 to 2 that is closed. Otherwise the next file would
// be opened there, and what the program prints would be written into it.
void occupy_standard_streams();

// Like open() with O_CLOEXEC, but never returns a descriptor below 3. Returns -1 and sets errno if
// the file cannot be opened.
int open_file(const char* path, int flags, mode_t mode = 0);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
