// SPDX-License-Identifier: MIT
#include "errors/mistake.h"
#include "support/pictures.h"

namespace tensorgrad::testing {

MISTAKE(picture_with_a_height_alone, IoError) {
  const std::string path = temporary("with_a_height.png");
  write_file_atomically(path, plain_png(2, 2, 1));
  // throws: TMP/with_a_height.png: height and width must both be 1 to 65535 or both 0, got 32 and 0
  static_cast<void>(read_image(path, {.height = 32}));
}

}  // namespace tensorgrad::testing
