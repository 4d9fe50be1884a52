// SPDX-License-Identifier: MIT
#include <filesystem>

#include "errors/mistake.h"
#include "support/pictures.h"

namespace tensorgrad::testing {

MISTAKE(class_folder_of_sizes_that_differ, IoError) {
  const std::string folder = temporary("sizes");
  for (const std::uint32_t size : {2U, 3U}) {
    const std::string of_class = folder + (size == 2 ? "/cat" : "/dog");
    std::filesystem::create_directories(of_class);
    for (const char* const name : {"/1.png", "/2.png", "/3.png"}) {
      write_file_atomically(of_class + name, plain_png(size, 2, 1));
    }
  }
  // throws: TMP/sizes/dog/#.png: is an image of [2,3,1]; expected [2,2,1], as in
  // TMP/sizes/cat/1.png
  static_cast<void>(read_image_folder(folder));
}

}  // namespace tensorgrad::testing
