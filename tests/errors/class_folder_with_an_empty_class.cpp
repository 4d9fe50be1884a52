// SPDX-License-Identifier: MIT
#include <filesystem>

#include "errors/mistake.h"
#include "support/pictures.h"

namespace tensorgrad::testing {

MISTAKE(class_folder_with_an_empty_class, IoError) {
  const std::string folder = temporary("empty_class");
  for (const char* const name : {"/cat", "/dog"})
    std::filesystem::create_directories(folder + name);
  write_file_atomically(folder + "/cat/1.png", plain_png(2, 2, 1));
  // throws: TMP/empty_class/dog: contains no images (.png, .jpg, .jpeg, .jfif)
  static_cast<void>(read_image_folder(folder));
}

}  // namespace tensorgrad::testing
