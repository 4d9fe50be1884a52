// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(picture_of_another_format, IoError) {
  const std::string path = temporary("cat.jpg");
  write_file_atomically(path, std::string("RIFF\x24\0\0\0WEBPVP8 ", 16));
  // throws: TMP/cat.jpg: begins with "RIFF$\x00\x00\x00WEBP"; expected a PNG or JPEG image
  static_cast<void>(read_image(path));
}

}  // namespace tensorgrad::testing
