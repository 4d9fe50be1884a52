// SPDX-License-Identifier: MIT
#include "errors/mistake.h"
#include "support/pictures.h"

namespace tensorgrad::testing {

MISTAKE(picture_cut_short, IoError) {
  const std::string path = temporary("cut_short.png");
  write_file_atomically(path, plain_png(4, 4, 3).substr(0, 50));
  // throws: TMP/cut_short.png: PNG truncated at byte 50: expected 5 more bytes of chunk "IDAT"
  static_cast<void>(read_image(path));
}

}  // namespace tensorgrad::testing
