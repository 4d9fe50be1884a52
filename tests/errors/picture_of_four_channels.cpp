// SPDX-License-Identifier: MIT
#include "errors/mistake.h"
#include "support/pictures.h"

namespace tensorgrad::testing {

MISTAKE(picture_of_four_channels, IoError) {
  const std::string path = temporary("four_channels.png");
  write_file_atomically(path, plain_png(2, 2, 1));
  // throws: TMP/four_channels.png: channels must be 1, 3 or 0 (as in the file), got 4
  static_cast<void>(read_image(path, {.channels = 4}));
}

}  // namespace tensorgrad::testing
