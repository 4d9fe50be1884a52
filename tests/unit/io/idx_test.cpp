// SPDX-License-Identifier: MIT
// IDX files and gzip: every element type, folders of four files, hostile input.
#include <gtest/gtest.h>

#include <cstring>

#include "io/gzip.h"
#include "io_test_util.h"
#include "tensorgrad/data/idx.h"
#include "tensorgrad/data/images.h"

namespace tensorgrad {
namespace {

using test::as_bytes;
using test::gzipped;
using test::idx_text;
using test::io_error_of;
using test::put_file;
using test::TempDir;
using test::TestRandom;

IdxArray parsed(const std::string& text) { return read_idx({as_bytes(text), "f"}); }

std::string idx_error_of(const std::string& text) {
  return io_error_of([&] { parsed(text); });
}

template <typename T>
T element(const IdxArray& array, std::size_t i) {
  T value;
  std::memcpy(&value, array.bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

TEST(Idx, reads_every_element_type_in_host_order) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(element<std::uint8_t>(parsed(idx_text(8, {2}, "\x01\xff")), 1), 255);
  EXPECT_EQ(element<std::int8_t>(parsed(idx_text(9, {2}, "\x01\xff")), 1), -1);
  EXPECT_EQ(element<std::int16_t>(parsed(idx_text(0x0b, {2}, "\x01\x02\xff\xfe")), 0), 0x0102);
  EXPECT_EQ(element<std::int32_t>(parsed(idx_text(0x0c, {1}, "\x01\x02\x03\x04")), 0), 0x01020304);
  EXPECT_EQ(element<float>(parsed(idx_text(0x0d, {1}, "\x3f\x80\x00\x00"sv)), 0), 1.0F);
  const IdxArray wide = parsed(idx_text(0x0e, {1, 1}, "\xc0\x00\x00\x00\x00\x00\x00\x00"sv));
  EXPECT_EQ(element<double>(wide, 0), -2.0);
  EXPECT_EQ(wide.shape, (Shape{1, 1}));
  EXPECT_EQ(to_string(wide.element), "f64");
}

TEST(Idx, gzip_is_detected_by_its_bytes) {
  const TempDir dir;
  const std::string plain = idx_text(8, {2, 3}, "abcdef");
  put_file(dir / "named.gz", plain);
  put_file(dir / "named", gzipped(plain));
  EXPECT_EQ(read_idx(dir / "named.gz").bytes, read_idx(dir / "named").bytes);
  const IdxArray joined = parsed(gzipped(plain.substr(0, 5)) + gzipped(plain.substr(5)));
  EXPECT_EQ(joined.shape, (Shape{2, 3}));
  EXPECT_EQ(joined.bytes.size(), 6U);
}

TEST(Idx, each_malformed_file_has_its_message) {
  const std::string good = idx_text(8, {2, 3}, "abcdef");
  std::string foreign = good;
  foreign[1] = 1;
  const std::string many(255 * 4, '\xff');
  const struct {
    std::string file;
    std::string message;
  } table[] = {
      {"", "truncated at byte 0: expected a 4-byte magic number"},
      {good.substr(0, 3), "truncated at byte 3: expected a 4-byte magic number"},
      {foreign, "not an IDX file at byte 0: expected two zero bytes"},
      {"PNG file", "not an IDX file at byte 0: expected two zero bytes"},
      {idx_text(0x0a, {1}, "a"),
       "unknown element type 10 at byte 2: expected 8, 9, 11, 12, 13 or 14"},
      {idx_text(8, {}, "a"), "rank 0 at byte 3: expected at least 1"},
      {good.substr(0, 11), "truncated at byte 11: expected 12 header bytes"},
      {idx_text(8, {2, 0}, ""), "size 0 of axis 1 at byte 8: expected at least 1"},
      {good.substr(0, 17), "truncated at byte 17: expected 6 bytes of u8 [2,3]"},
      {good + "g", "extra bytes at byte 18: expected the end of the data after u8 [2,3]"},
      {idx_text(8, {60'000, 28, 28}, ""),
       "shape [60000,28,28] at byte 4: the file is too short for u8 [60000,28,28]"},
      {idx_text(0x0e, {~0U, ~0U, ~0U}, ""),
       "shape [4294967295,4294967295,4294967295] at byte 4: the file is too short for f64 "
       "[4294967295,4294967295,4294967295]"},
      {gzipped(good.substr(0, 17)),
       "truncated at byte 17 of the decompressed data: expected 6 bytes of u8 [2,3]"},
      {gzipped(good + "g"),
       "extra bytes at byte 18 of the decompressed data: expected the end of the data after "
       "u8 [2,3]"},
  };
  for (const auto& row : table) EXPECT_EQ(idx_error_of(row.file), "f: " + row.message);
  EXPECT_NE(idx_error_of(std::string("\0\0\x08\xff", 4) + many).find("too short"),
            std::string::npos);
}

TEST(Idx, zip_bomb_is_rejected_before_inflating) {
  // 16 MB of zeros after a header that declares six bytes, and a header that declares 4 TB.
  const std::string bomb = gzipped(idx_text(8, {2, 3}, std::string(std::size_t{16} << 20, '\0')));
  EXPECT_NE(idx_error_of(bomb).find("extra bytes at byte 18"), std::string::npos);
  EXPECT_NE(idx_error_of(gzipped(idx_text(8, {1U << 21, 1U << 21}, "x"))).find("too short"),
            std::string::npos);
}

TEST(Gzip, damage_is_found) {
  const std::string good = gzipped(idx_text(8, {600}, std::string(600, 'x')));
  std::string checksum = good;
  checksum[good.size() - 8] = static_cast<char>(checksum[good.size() - 8] ^ 1);
  EXPECT_NE(idx_error_of(checksum).find("f: damaged gzip stream (incorrect data check) at byte"),
            std::string::npos);
  const std::string at_end = std::to_string(good.size());
  EXPECT_EQ(idx_error_of(good.substr(0, good.size() - 1)),
            "f: truncated gzip stream at byte " + std::to_string(good.size() - 1));
  EXPECT_EQ(idx_error_of(good + "junk"),
            "f: extra bytes after the end of the gzip stream at byte " + at_end);
  EXPECT_EQ(idx_error_of("\x1f\x8b"), "f: truncated gzip stream at byte 2");
  EXPECT_EQ(idx_error_of("\x1f\x8bxxxxxxxxxx").rfind("f: damaged gzip stream (", 0), 0U);
  for (std::size_t n = 0; n < good.size(); ++n)
    EXPECT_NE(idx_error_of(good.substr(0, n)), "no error");
}

TEST(Gzip, reads_in_pieces_of_any_size) {
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += std::to_string(i);
  for (const std::string& file :
       {text, gzipped(text), gzipped(text.substr(0, 7)) + gzipped("") + gzipped(text.substr(7))}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}, text.size() + 1}) {
      io::InflatingReader reader(as_bytes(file), "f");
      std::string got;
      std::vector<std::byte> buffer(piece);
      while (const std::size_t n = reader.read(buffer)) {
        got.append(reinterpret_cast<const char*>(buffer.data()), n);
      }
      EXPECT_TRUE(got == text);
      EXPECT_LE(text.size(), reader.most_bytes());
    }
  }
}

TEST(Idx, mutated_files_throw_or_are_consistent) {
  const std::string plain = idx_text(8, {2, 3}, "abcdef");
  const std::string seeds[] = {plain, gzipped(plain), idx_text(0x0b, {5}, "0123456789")};
  TestRandom random(2);
  int accepted = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string text = test::mutated(seeds[random.below(3)], random);
    try {
      const IdxArray array = parsed(text);
      EXPECT_EQ(static_cast<std::size_t>(numel(array.shape)) * idx_element_bytes(array.element),
                array.bytes.size());
      ++accepted;
    } catch (const IoError& error) {
      EXPECT_EQ(error.message().rfind("f: ", 0), 0U);
    }
  }
  EXPECT_GT(accepted, 100);
}

// The files of a data set of 3 training and 2 test images of 2x2.
struct Names {
  std::string train_images = "train-images-idx3-ubyte";
  std::string train_labels = "train-labels-idx1-ubyte";
  std::string test_images = "t10k-images-idx3-ubyte";
  std::string test_labels = "t10k-labels-idx1-ubyte";
};

void put_folder(const TempDir& dir, const Names& names = {}) {
  const auto put = [&](const std::string& name, const std::string& text) {
    put_file(dir / name, name.ends_with(".gz") ? gzipped(text) : text);
  };
  put(names.train_images, idx_text(8, {3, 2, 2}, "abcdefghijkl"));
  put(names.train_labels, idx_text(8, {3}, std::string("\0\2\1", 3)));
  put(names.test_images, idx_text(8, {2, 2, 2}, "mnopqrst"));
  put(names.test_labels, idx_text(8, {2}, std::string("\2\0", 2)));
}

TEST(ImageFolder, finds_all_usual_names) {
  const Names variants[] = {
      {},
      {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz",
       "t10k-labels-idx1-ubyte.gz"},
      {"train-images.idx3-ubyte", "train-labels.idx1-ubyte", "t10k-images.idx3-ubyte",
       "t10k-labels.idx1-ubyte"},
      {"train-images.idx3-ubyte.gz", "train-labels.idx1-ubyte.gz", "test-images.idx3-ubyte.gz",
       "test-labels-idx1-ubyte"},
      {"train-images.idx", "train-labels.idx", "test-images.gz", "test-labels-ubyte"},
  };
  for (const Names& names : variants) {
    const TempDir dir;
    put_folder(dir, names);
    const LabeledImages data = read_image_folder(dir.str());
    EXPECT_EQ(data.image_shape, (Shape{2, 2}));
    EXPECT_EQ(data.classes, 3);
    EXPECT_EQ(data.class_names, (std::vector<std::string>{"0", "1", "2"}));
    EXPECT_EQ(data.train.count, 3);
    EXPECT_EQ(data.train.images.size(), 12U);
    EXPECT_EQ(data.train.images[11], 'l');
    EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{0, 2, 1}));
    EXPECT_EQ(data.test.count, 2);
    EXPECT_EQ(data.test.labels, (std::vector<std::int32_t>{2, 0}));
  }
}

TEST(ImageFolder, prefers_plain_files_and_ignores_folders) {
  const TempDir dir;
  put_folder(dir);
  put_file(dir / "train-images-idx3-ubyte.gz", "not a gzip file");
  std::filesystem::create_directory(dir / "test-images-idx3-ubyte");
  EXPECT_EQ(read_image_folder(dir.str()).train.count, 3);
}

TEST(ImageFolder, takes_class_names_from_a_file) {
  const TempDir dir;
  put_folder(dir);
  put_file(dir / "classes.txt", "ant\r\nb\xc3\xa4r\ncat\ndog\n");
  const LabeledImages data = read_image_folder(dir.str());
  EXPECT_EQ(data.classes, 4);
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"ant", "b\xc3\xa4r", "cat", "dog"}));
  const std::string path = dir / "classes.txt";
  const auto error = [&] { return io_error_of([&] { read_image_folder(dir.str()); }); };
  put_file(path, "");
  EXPECT_EQ(error(), path + ": is empty; expected one class name per line");
  put_file(path, "ant\n\ncat\n");
  EXPECT_EQ(error(), path + ": line 2: expected a class name in UTF-8");
  put_file(path, "ant\nbee\n");
  EXPECT_EQ(error(), (dir / "train-labels-idx1-ubyte") + ": label 2 at byte 9: expected 0 to 1");
}

TEST(ImageFolder, errors_name_what_does_not_fit) {
  const TempDir dir;
  const auto error = [&] { return io_error_of([&] { read_image_folder(dir.str()); }); };
  EXPECT_EQ(error(), dir.str() +
                         ": no file train-images-idx3-ubyte[.gz] in this folder, nor a folder of "
                         "images for each class");
  EXPECT_EQ(io_error_of([&] { read_image_folder(dir / "no"); }),
            (dir / "no") +
                ": is not a folder; expected a folder with train-images-idx3-ubyte[.gz] or with a "
                "folder of images for each class");
  put_folder(dir);
  std::filesystem::remove(dir / "t10k-labels-idx1-ubyte");
  EXPECT_EQ(error(), dir.str() +
                         ": no file t10k-labels-idx1-ubyte[.gz] or "
                         "test-labels-idx1-ubyte[.gz] in this folder");
  const std::string labels = dir / "t10k-labels-idx1-ubyte";
  put_file(labels, idx_text(8, {3}, "\1\1\1"));
  EXPECT_EQ(error(), labels + ": contains 3 labels; expected 2, one per image of " +
                         (dir / "t10k-images-idx3-ubyte"));
  put_file(labels, idx_text(8, {2}, "\1\3"));
  EXPECT_EQ(error(), labels + ": label 3 at byte 9: expected 0 to 2");
  put_file(labels, idx_text(9, {2}, "\1\xff"));
  EXPECT_EQ(error(), labels + ": label -1 at byte 9: expected 0 to 2");
  put_file(labels, idx_text(0x0d, {1}, std::string(4, '\0')));
  EXPECT_EQ(error(), labels + ": contains f32 [1]; expected one integer per image");
  put_folder(dir);
  const std::string images = dir / "t10k-images-idx3-ubyte";
  put_file(images, idx_text(8, {2, 2, 3}, std::string(12, 'x')));
  EXPECT_EQ(error(), images + ": images are [2,3]; expected [2,2], as in " +
                         (dir / "train-images-idx3-ubyte"));
  put_file(images, idx_text(8, {2}, "xx"));
  EXPECT_EQ(error(), images + ": contains u8 [2]; expected u8 images [count, height, width]");
}

TEST(ImageFolder, takes_idx_images_as_they_are) {
  const TempDir dir;
  put_folder(dir);
  const auto error = [&](const ImageFolderOptions& options) {
    return io_error_of([&] { read_image_folder(dir.str(), options); });
  };
  EXPECT_EQ(error({.height = 2, .width = 2, .channels = 1}), "no error");
  const std::string images = (dir / "train-images-idx3-ubyte") + ": images are [2,2]; expected ";
  const std::string as_they_are = " (IDX images are not resized or converted)";
  EXPECT_EQ(error({.height = 2, .width = 3}), images + "[2,3]" + as_they_are);
  EXPECT_EQ(error({.channels = 3}), images + "[2,2,3]" + as_they_are);
  put_file(dir / "train-images-idx3-ubyte", idx_text(8, {3, 4, 1, 1}, "abcdefghijkl"));
  put_file(dir / "t10k-images-idx3-ubyte", idx_text(8, {2, 4, 1, 1}, "mnopqrst"));
  EXPECT_EQ(error({.height = 4, .width = 1, .channels = 1}), "no error");
}

TEST(ImageFolder, labels_may_be_of_any_integer_type) {
  const TempDir dir;
  put_folder(dir);
  put_file(dir / "train-labels-idx1-ubyte", idx_text(0x0b, {3}, std::string("\1\0\0\2\0\0", 6)));
  EXPECT_EQ(read_image_folder(dir.str()).classes, 257);
}

TEST(ImageFolder, knows_fashion_mnist) {
  const char* const folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  const LabeledImages data = read_image_folder(folder);
  EXPECT_EQ(data.train.count, 60'000);
  EXPECT_EQ(data.test.count, 10'000);
  EXPECT_EQ(data.image_shape, (Shape{28, 28}));
  EXPECT_EQ(data.class_names.at(9), "Ankle boot");
  EXPECT_EQ(data.train.labels[0], 9);
}

}  // namespace
}  // namespace tensorgrad
