// SPDX-License-Identifier: MIT
#include <filesystem>

#include "errors/mistake.h"
#include "support/pictures.h"

namespace tensorgrad::testing {

MISTAKE(class_folder_too_small_to_hold_out, IoError) {
  const std::string folder = temporary("too_small");
  for (const char* const name : {"/cat", "/dog"}) {
    std::filesystem::create_directories(folder + name);
    write_file_atomically(folder + name + "/1.png", plain_png(2, 2, 1));
  }
  // throws: TMP/too_small: has 2 images in 2 classes, too few for a holdout of 0.2
  static_cast<void>(read_image_folder(folder));
}

}  // namespace tensorgrad::testing
