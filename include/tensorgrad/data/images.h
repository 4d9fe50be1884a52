// SPDX-License-Identifier: MIT
// Images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct Image {
  std::int64_t height = 0, width = 0;     // pixels
  int channels = 0;                       // 1: grey; 3: red, green, blue
  std::vector<std::uint8_t> pixels = {};  // [height, width, channels]
};

struct ImageOptions {
  std::int64_t height = 0, width = 0;  // the picture is resized to; both 0: it is left as it is
  int channels = 3;                    // 1, 3, or 0: 1 where the file holds greys, else 3
  std::uint64_t max_bytes = std::uint64_t{256} << 20;  // of the file, and of its pixels
};

// A picture from a PNG (of any kind) or a JPEG (baseline or progressive, 8 bits). Grey is
// 0.30 red + 0.59 green + 0.11 blue; transparency is dropped, of 16 bits the upper 8 are kept, and
// which way up a camera was held (Exif) is ignored. Along an axis that becomes smaller a pixel is
// the mean of the area that it covers; along one that becomes larger it lies between its two
// neighbours in proportion; where height and width do not fit each other the picture is stretched.
// The same bytes on every machine. IoError: what is no whole PNG or JPEG (checksums are verified),
// has a side above 65,535 pixels, or is larger than allowed, which is known before memory is taken.
Image read_image(const std::string& path, const ImageOptions& options = {});

// `bytes` is the file; `name` stands for it in messages.
Image parse_image(std::span<const std::byte> bytes, std::string_view name,
                  const ImageOptions& options = {});

struct ImageSet {
  std::int64_t count = 0;
  std::vector<std::uint8_t> images;  // [count, image_shape...]
  std::vector<std::int32_t> labels;  // [count], each in [0, classes)
};

struct LabeledImages {
  Shape image_shape;  // [28,28]; [32,32,3]
  int classes = 0;
  std::vector<std::string> class_names;  // one per class
  ImageSet train;
  ImageSet test;
  std::int64_t skipped = 0;  // files in class folders that are no pictures
};

// Of class folders; IDX files are taken as they are, and where another height, width or number of
// channels is asked for than they have, that is an error.
struct ImageFolderOptions {
  std::int64_t height = 0, width = 0;  // all pictures are resized to; 0: they are of one size
  int channels = 0;                    // 1: grey; 3: RGB; 0: what the first picture has
  // Fixes the meaning of the labels, as for pictures that a trained model is to be tested on.
  std::vector<std::string> class_names = {};
  double holdout = 0.2;  // share of each class that goes to `test`, in [0,1)
  std::uint64_t seed = 0;
  std::uint64_t max_bytes = std::uint64_t{4} << 30;  // of all pixels
  std::string hint = {};  // ends errors about sizes and channels: how a user names others
};

// Either of two kinds of folders, which it tells apart by itself.
//
// IDX: the four files train-images* and train-labels*, with t10k-* or test-* beside them, each
// named -idx3-ubyte or .idx3-ubyte, with or without .gz (a plain file goes first). Class names
// come from classes.txt (one a line) if the folder has it; else they are those of Fashion-MNIST if
// the folder's name says so; else "0", "1", ...
//
// Class folders: FOLDER/CLASS/PICTURE, or FOLDER/train/CLASS/PICTURE with FOLDER/test, FOLDER/val
// or FOLDER/valid (the first that is there) like it; without these a share of each class is held
// out. Classes are the names of the folders, sorted by their bytes. Pictures are the files whose
// names end in .png, .jpg, .jpeg or .jfif, whatever the case; others are counted in `skipped`,
// hidden ones and Thumbs.db, desktop.ini and __MACOSX are not. The first picture is that of the
// first class whose name is the first. Images are [height, width] where they have one channel,
// else [height, width, 3], in an order that the seed alone shuffles, as it picks those held out.
LabeledImages read_image_folder(const std::string& folder, const ImageFolderOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
