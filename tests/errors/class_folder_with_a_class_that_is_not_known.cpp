// SPDX-License-Identifier: MIT
#include <filesystem>

#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(class_folder_with_a_class_that_is_not_known, IoError) {
  const std::string folder = temporary("not_known");
  std::filesystem::create_directories(folder + "/dragon");
  // throws: TMP/not_known/dragon: is not one of the 2 known classes, "cat" to "dog"
  static_cast<void>(read_image_folder(folder, {.class_names = {"cat", "dog"}}));
}

}  // namespace tensorgrad::testing
