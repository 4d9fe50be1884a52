// SPDX-License-Identifier: MIT
// A folder of folders of pictures, one a class: see read_image_folder().
#pragma once

#include "tensorgrad/data/images.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// Whether the folder holds visible folders, and no file of an IDX data set.
bool is_class_folder(const FolderSource& folder);

LabeledImages read_class_folder(const FolderSource& folder, const ImageFolderOptions& options);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
