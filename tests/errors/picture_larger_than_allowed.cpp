// SPDX-License-Identifier: MIT
#include "errors/mistake.h"
#include "support/pictures.h"

namespace tensorgrad::testing {

MISTAKE(picture_larger_than_allowed, IoError) {
  const std::string path = temporary("large.png");
  write_file_atomically(path, plain_png(300, 200, 1));
  // throws: TMP/large.png: an image of [200,300,3] takes 180000 bytes; at most 100000 allowed
  static_cast<void>(read_image(path, {.max_bytes = 100'000}));
}

}  // namespace tensorgrad::testing
