// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(idx_file_of_an_impossible_size, IoError) {
  const std::string path = temporary("impossible-idx2-ubyte");
  write_file_atomically(path, std::string("\0\0\x0e\x02\xff\xff\xff\xff\xff\xff\xff\xff", 12));
  // throws: TMP/impossible-idx2-ubyte: shape [4294967295,4294967295] at byte 4: the file is too
  // short for f64 [4294967295,4294967295]
  static_cast<void>(read_idx(path));
}

}  // namespace tensorgrad::testing
