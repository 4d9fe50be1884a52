// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(image_folder_without_images, IoError) {
  // throws: TMP/no_such_folder: is not a folder; expected a folder with
  // train-images-idx3-ubyte[.gz] or with a folder of images for each class
  static_cast<void>(read_image_folder(temporary("no_such_folder")));
}

}  // namespace tensorgrad::testing
