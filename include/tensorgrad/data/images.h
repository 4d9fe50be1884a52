// SPDX-License-Identifier: MIT
// PNG and JPEG images, and folders of labeled images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Image with 8 bits per channel.
struct Image {
  std::int64_t height = 0;                ///< In pixels.
  std::int64_t width = 0;                 ///< In pixels.
  int channels = 0;                       ///< 1: gray; 3: red, green, blue.
  std::vector<std::uint8_t> pixels = {};  ///< [height, width, channels]
};

/// Options of read_image().
struct ImageOptions {
  std::int64_t height = 0;  ///< Height of the result, from 1 to 65,535; 0: not resized.
  std::int64_t width = 0;   ///< Width of the result, likewise; 0 if `height` is 0.
  int channels = 3;         ///< 1, 3, or 0: as in the file, 1 if it is gray and 3 otherwise.
  std::uint64_t max_bytes = std::uint64_t{256} << 20;  ///< Limit on the file, and on the pixels.
  /// Limit on the ratio of the pixels to the file, unless the pixels have at most 64 MiB.
  double max_expansion = kMaxExpansion;
};

/// Reads a PNG or JPEG image (baseline or progressive, 8 bits). The result is the same on every
/// machine.
///
/// Conversion to gray is 0.30 red + 0.59 green + 0.11 blue. Transparency, the lower 8 of 16 bits
/// and the Exif orientation are ignored. If an axis shrinks, each pixel is the mean of the area
/// that it covers. If an axis grows, pixels are interpolated linearly. The aspect ratio is not
/// preserved.
///
/// Throws IoError if an option is out of range, or if the file cannot be read, is not a complete
/// PNG or JPEG, or has a wrong checksum. Also throws IoError if a side exceeds 65,535 pixels or the
/// image exceeds `max_bytes`; this is checked before pixels are allocated.
Image read_image(const FileSource& source, const ImageOptions& options = {});

/// Images with labels.
struct ImageSet {
  std::int64_t count = 0;            ///< Number of images.
  std::vector<std::uint8_t> images;  ///< [count, LabeledImages::image_shape...]
  std::vector<std::int32_t> labels;  ///< [count], each in [0, classes).
};

/// Dataset returned by read_image_folder().
struct LabeledImages {
  Shape image_shape;  ///< [height, width] of gray images, else [height, width, 3].
  int classes = 0;    ///< Number of classes.
  std::vector<std::string> class_names;  ///< One per class.
  ImageSet train;            ///< Images for training, shuffled if they are from class folders.
  ImageSet test;             ///< Images for testing; empty without a test folder if `holdout` is 0.
  std::int64_t skipped = 0;  ///< Number of files in class folders that are not images.
};

/// Options of read_image_folder(). IDX images are neither resized nor converted, and IoError is
/// thrown if they do not have the `height`, `width` or `channels` set here. All other options apply
/// only to class folders.
struct ImageFolderOptions {
  std::int64_t height = 0;  ///< Height to resize to; 0: not resized, all have one size.
  std::int64_t width = 0;   ///< Width to resize to; 0 if `height` is 0.
  int channels = 0;         ///< 1: gray; 3: RGB; 0: as in the first image.

  /// Class names in the order of their numbers, for example those that a trained model knows.
  /// Empty: the names of the folders.
  std::vector<std::string> class_names = {};

  double holdout = 0.2;    ///< Fraction of each class that goes to `test`, in [0, 1).
  std::uint64_t seed = 0;  ///< Seed of the order and of the held-out images.
  std::uint64_t max_bytes = std::uint64_t{4} << 30;  ///< Limit on all pixels together.
  std::string hint = {};  ///< Appended to errors about sizes and channels: how to set them.
};

/// Reads a folder of labeled images for training and testing. The folder has one of two layouts.
///
/// IDX files, as MNIST has them: train-images and train-labels, with t10k-images and t10k-labels or
/// test-images and test-labels. The names have the usual endings, such as `-idx3-ubyte` or
/// `.idx3-ubyte`. Files can be gzipped; a plain file is preferred. The file classes.txt contains
/// the class names, one per line. Without it, ten classes have the names of Fashion-MNIST if the
/// path contains "fashionmnist", ignoring case and punctuation. Otherwise the names are numbers
/// from "0".
///
/// Class folders: FOLDER/CLASS/IMAGE, or FOLDER/train/CLASS/IMAGE with a second folder for testing,
/// which is FOLDER/test, FOLDER/val or FOLDER/valid, the first that exists. Without a second
/// folder, the fraction `holdout` of each class is used for testing, but never all of a class.
/// Classes are sorted by the bytes of their names.
///
/// Images in class folders are files with the extension .png, .jpg, .jpeg or .jfif, in any case.
/// Other files are counted in LabeledImages::skipped, except hidden files, Thumbs.db, desktop.ini
/// and `__MACOSX`. The first image of the first class determines the size and channels that are not
/// set. The order of the images and the held-out ones depend only on `seed`.
///
/// Throws IoError if the folder has neither layout, a file is missing or malformed, images and
/// labels do not match, or images differ in size or channels. For class folders, also throws
/// IoError if an option is out of range, a class is empty, unknown or the only one, or `max_bytes`
/// is exceeded.
LabeledImages read_image_folder(const FolderSource& folder, const ImageFolderOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
