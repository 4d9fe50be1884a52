// SPDX-License-Identifier: MIT
// Data sets: pictures (PNG, JPEG), IDX arrays (MNIST and its kin), CSV tables with a label column,
// and text as tokens; the last three gzipped or not. What a file is is told by its first bytes,
// never by its name. All functions throw IoError that names the file and the byte (pictures, IDX,
// text) or the line and column (CSV), where nothing else is said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad {

enum class IdxElement : std::uint8_t { kU8, kI8, kI16, kI32, kF32, kF64 };

std::size_t idx_element_bytes(IdxElement element);
// "u8", "i8", "i16", "i32", "f32", "f64".
std::string_view to_string(IdxElement element);

// One IDX file: rank 1 or more, every size at least 1, elements row-major in the host's byte order.
struct IdxArray {
  Shape shape;
  IdxElement element = IdxElement::kU8;
  std::vector<std::byte> bytes;
};

IdxArray read_idx(const std::string& path);
// `bytes` is the file, perhaps gzipped; `name` stands for it in messages.
IdxArray parse_idx(std::span<const std::byte> bytes, std::string_view name);

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

struct LabelledImages {
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
LabelledImages read_image_folder(const std::string& folder, const ImageFolderOptions& options = {});

struct CsvOptions {
  enum class Header { kAuto, kYes, kNo };

  std::string label;  // name of the label column, or its index (-1 is the last); empty: the last
  bool unlabelled = false;  // every column is a feature
  std::string label_hint;   // ends errors about the label column: how a user names another one
  Header header = Header::kAuto;
  char delimiter = ',';
  // Fixes the meaning of the labels, as for a file that a trained model is to be tested on.
  std::vector<std::string> class_names;
  double holdout = 0.0;  // share of the rows that go to `test`, in [0,1)
  std::uint64_t seed = 0;
  std::uint64_t max_bytes = std::uint64_t{2} << 30;  // of text, after inflation
  int max_classes = 10'000;
};

struct CsvRows {
  std::int64_t count = 0;
  std::vector<float> features;  // [count, feature_names.size()], finite
  std::vector<std::int32_t>
      labels;  // [count], each in [0, class_names.size()); empty if unlabelled
};

struct CsvData {
  std::vector<std::string> feature_names;  // "column 0", ... where there is no header
  std::string label_name;
  std::vector<std::string> class_names;  // distinct labels, sorted: by value if all are integers
  bool had_header = false;
  CsvRows train;
  CsvRows test;  // empty without holdout; rows keep the order of the file in both
};

CsvData read_csv(const std::string& path, const CsvOptions& options = {});
// `text` is the file, inflated already.
CsvData parse_csv(std::string_view text, std::string_view name, const CsvOptions& options = {});

// Characters as numbers: the i-th symbol is token i. A character is a code point in UTF-8.
class Vocabulary {
 public:
  // IoError: a symbol that is not one character, or is there twice.
  explicit Vocabulary(std::vector<std::string> symbols);
  // The characters of `text`, sorted by code point.
  static Vocabulary of(std::string_view text, std::string_view name = "text");

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(symbols_.size()); }
  [[nodiscard]] const std::vector<std::string>& symbols() const { return symbols_; }
  // IoError, with the byte: a character that is not among the symbols, or no UTF-8. `name` stands
  // for the text in messages.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text,
                                                 std::string_view name = "text") const;
  // IoError: a token out of range.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens) const;

 private:
  std::vector<std::string> symbols_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;
};

struct TextOptions {
  // What a trained model knows; empty: the characters that occur.
  std::vector<std::string> vocabulary = {};
  double holdout = 0.1;  // share of the characters, at the end, that is `validation`; in [0,1)
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  // after inflation
};

struct TextData {
  Vocabulary vocabulary;
  std::vector<std::int32_t> train, validation;  // tokens
};

// A file in UTF-8; a byte order mark is skipped.
TextData read_text(const std::string& path, const TextOptions& options = {});
// `text` is the file, inflated already.
TextData parse_text(std::string_view text, std::string_view name, const TextOptions& options = {});

// Windows of `length` tokens in a row, each `stride` tokens after the one before. With stride 1 a
// shuffled DataLoader draws them at random, with stride `length` - 1 an unshuffled one reads the
// text from beginning to end, foretelling every token but the first once. Refers to the tokens.
class TokenWindows {
 public:
  // UserError where not even one fits.
  TokenWindows(std::span<const std::int32_t> tokens, std::int64_t length, std::int64_t stride = 1,
               std::source_location loc = std::source_location::current());

  [[nodiscard]] std::int64_t size() const {
    return (static_cast<std::int64_t>(tokens_.size()) - length_) / stride_ + 1;
  }
  [[nodiscard]] std::span<const std::int32_t> at(
      std::int64_t index, std::source_location loc = std::source_location::current()) const;

 private:
  std::span<const std::int32_t> tokens_;
  std::int64_t length_, stride_;
};

}  // namespace tensorgrad
