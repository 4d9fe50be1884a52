// SPDX-License-Identifier: MIT
#include <filesystem>

#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(class_folder_given_one_level_too_high, IoError) {
  const std::string folder = temporary("too_high");
  std::filesystem::create_directories(folder + "/animals/cat");
  std::filesystem::create_directories(folder + "/plants/oak");
  // throws: TMP/too_high/animals/cat: is a folder inside class "animals"; expected images, as in
  // FOLDER/CLASS/1.png
  static_cast<void>(read_image_folder(folder));
}

}  // namespace tensorgrad::testing
