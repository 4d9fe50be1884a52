// SPDX-License-Identifier: MIT
// Image data sets with one subfolder per class; see read_image_folder().
#pragma once

#include "tensorgrad/data/images.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// True if the folder has visible subfolders, and no file of an IDX data set.
bool is_class_folder(const FolderSource& folder);

LabeledImages read_class_folder(const FolderSource& folder, const ImageFolderOptions& options);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
