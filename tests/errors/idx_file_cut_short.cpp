// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(idx_file_cut_short, IoError) {
  const std::string path = temporary("cut_short-idx1-ubyte");
  write_file_atomically(path, std::string("\0\0\x08\x01\0\0\0\x05"
                                          "abc",
                                          11));
  // throws: TMP/cut_short-idx1-ubyte: truncated at byte 11: expected 5 bytes of u8 [5]
  static_cast<void>(read_idx(path));
}

}  // namespace tensorgrad::testing
