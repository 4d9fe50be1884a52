// SPDX-License-Identifier: MIT
// Files of data that cannot be read.
#include <cstdint>
#include <filesystem>
#include <string>

#include "errors/example.h"
#include "support/pictures.h"

namespace tensorgrad::testing {
namespace {

// Writes a grey image of `width` x 2 pixels, and the folder that holds it. Returns the path.
std::string write_picture(const std::string& path, std::uint32_t width = 2) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_file_atomically(path, plain_png(width, 2, 1));
  return path;
}

void read_csv_text(const std::string& text, const CsvOptions& options = {}) {
  static_cast<void>(read_csv(FileSource::text(text, "data.csv"), options));
}

}  // namespace

TEST(CsvErrors, row_invalid) {
  EXPECT_ERROR_WITHOUT_LINE(read_csv_text("a,b,label\n1,2,cat\n3,dog\n"), IoError,
                            "data.csv: line 3: has 2 columns; expected 3, as in the first line");
  EXPECT_ERROR_WITHOUT_LINE(read_csv_text("a,b,label\n"), IoError,
                            "data.csv: has a header but no rows");
}

TEST(CsvErrors, cell_not_a_finite_number) {
  EXPECT_ERROR_WITHOUT_LINE(read_csv_text("a,b,label\n1,2,cat\n3,x,dog\n"), IoError,
                            "data.csv: line 3, column 2 (\"b\"): \"x\" is not a finite number");
  EXPECT_ERROR_WITHOUT_LINE(read_csv_text("a,b,label\n1,2,cat\n3,inf,dog\n"), IoError,
                            "data.csv: line 3, column 2 (\"b\"): \"inf\" is not a finite number");
}

TEST(CsvErrors, label_column_missing) {
  CsvOptions options;
  options.label = "species";
  EXPECT_ERROR_WITHOUT_LINE(
      read_csv_text("a,b\n1,2\n", options), IoError,
      "data.csv: has no column named \"species\": the first line is \"a\", \"b\"");
}

TEST(IdxErrors, file_truncated) {
  const std::string path = temporary("cut_short-idx1-ubyte");
  write_file_atomically(path, std::string("\0\0\x08\x01\0\0\0\x05"
                                          "abc",
                                          11));
  EXPECT_ERROR_WITHOUT_LINE(read_idx(path), IoError,
                            path + ": truncated at byte 11: expected 5 bytes of u8 [5]");
}

TEST(IdxErrors, shape_too_large) {
  const std::string path = temporary("impossible-idx2-ubyte");
  write_file_atomically(path, std::string("\0\0\x0e\x02\xff\xff\xff\xff\xff\xff\xff\xff", 12));
  EXPECT_ERROR_WITHOUT_LINE(read_idx(path), IoError,
                            path +
                                ": shape [4294967295,4294967295] at byte 4: the file is too short "
                                "for f64 [4294967295,4294967295]");
}

TEST(ImageErrors, file_truncated) {
  const std::string path = temporary("cut_short.png");
  write_file_atomically(path, plain_png(4, 4, 3).substr(0, 50));
  EXPECT_ERROR_WITHOUT_LINE(
      read_image(path), IoError,
      path + ": PNG truncated at byte 50: expected 5 more bytes of chunk \"IDAT\"");
}

TEST(ImageErrors, format_unknown) {
  const std::string path = temporary("cat.jpg");
  write_file_atomically(path, std::string("RIFF\x24\0\0\0WEBPVP8 ", 16));
  EXPECT_ERROR_WITHOUT_LINE(
      read_image(path), IoError,
      path + ": begins with \"RIFF$\\x00\\x00\\x00WEBP\"; expected a PNG or JPEG image");
}

TEST(ImageErrors, image_larger_than_allowed) {
  const std::string path = write_picture(temporary("large.png"), 300);
  EXPECT_ERROR_WITHOUT_LINE(
      read_image(path, {.max_bytes = 1000}), IoError,
      path + ": an image of [2,300,3] takes 1800 bytes; at most 1000 allowed");
}

TEST(ImageErrors, channels_four) {
  const std::string path = write_picture(temporary("four_channels.png"));
  EXPECT_ERROR_WITHOUT_LINE(read_image(path, {.channels = 4}), IoError,
                            path + ": channels must be 1, 3 or 0 (as in the file), got 4");
}

TEST(ImageErrors, height_without_width) {
  const std::string path = write_picture(temporary("with_a_height.png"));
  EXPECT_ERROR_WITHOUT_LINE(
      read_image(path, {.height = 32}), IoError,
      path + ": height and width must both be 1 to 65535 or both 0, got 32 and 0");
}

TEST(ImageFolderErrors, folder_missing) {
  const std::string folder = temporary("no_such_folder");
  EXPECT_ERROR_WITHOUT_LINE(
      read_image_folder(folder), IoError,
      folder +
          ": is not a folder; expected a folder with train-images-idx3-ubyte[.gz] or with a folder "
          "of images for each class");
}

TEST(ImageFolderErrors, one_level_too_high) {
  const std::string folder = temporary("too_high");
  write_picture(folder + "/animals/cat/1.png");
  write_picture(folder + "/plants/oak/1.png");
  EXPECT_ERROR_WITHOUT_LINE(read_image_folder(folder), IoError,
                            folder +
                                "/animals/cat: is a folder inside class \"animals\"; expected "
                                "images, as in FOLDER/CLASS/1.png");
}

TEST(ImageFolderErrors, only_one_class) {
  const std::string folder = temporary("one_class");
  write_picture(folder + "/cat/1.png");
  EXPECT_ERROR_WITHOUT_LINE(
      read_image_folder(folder), IoError,
      folder + ": contains only one class, \"cat\"; expected at least two folders");
}

TEST(ImageFolderErrors, image_sizes_differ) {
  const std::string folder = temporary("sizes");
  for (const char* const name : {"/1.png", "/2.png", "/3.png"}) {
    write_picture(folder + "/cat" + name, 2);
    write_picture(folder + "/dog" + name, 3);
  }
  EXPECT_ERROR_WITHOUT_LINE(
      read_image_folder(folder), IoError,
      MatchesRegex(folder +
                   R"(/dog/[0-9]\.png: is an image of \[2,3,1\]; expected \[2,2,1\], as in )" +
                   folder + "/cat/1.png"));
}

TEST(ImageFolderErrors, too_few_images_for_holdout) {
  const std::string folder = temporary("too_small");
  write_picture(folder + "/cat/1.png");
  write_picture(folder + "/dog/1.png");
  EXPECT_ERROR_WITHOUT_LINE(read_image_folder(folder), IoError,
                            folder + ": has 2 images in 2 classes, too few for a holdout of 0.2");
}

TEST(ImageFolderErrors, class_unknown) {
  const std::string folder = temporary("not_known");
  write_picture(folder + "/dragon/1.png");
  EXPECT_ERROR_WITHOUT_LINE(
      read_image_folder(folder, {.class_names = {"cat", "dog"}}), IoError,
      folder + "/dragon: is not one of the 2 known classes, \"cat\" to \"dog\"");
}

TEST(ImageFolderErrors, class_without_images) {
  const std::string folder = temporary("empty_class");
  write_picture(folder + "/cat/1.png");
  std::filesystem::create_directories(folder + "/dog");
  EXPECT_ERROR_WITHOUT_LINE(read_image_folder(folder), IoError,
                            folder + "/dog: contains no images (.png, .jpg, .jpeg, .jfif)");
}

}  // namespace tensorgrad::testing
