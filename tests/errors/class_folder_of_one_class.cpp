// SPDX-License-Identifier: MIT
#include <filesystem>

#include "errors/mistake.h"
#include "support/pictures.h"

namespace tensorgrad::testing {

MISTAKE(class_folder_of_one_class, IoError) {
  const std::string folder = temporary("one_class");
  std::filesystem::create_directories(folder + "/cat");
  write_file_atomically(folder + "/cat/1.png", plain_png(2, 2, 1));
  // throws: TMP/one_class: contains only one class, "cat"; expected at least two folders
  static_cast<void>(read_image_folder(folder));
}

}  // namespace tensorgrad::testing
