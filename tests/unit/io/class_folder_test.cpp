// SPDX-License-Identifier: MIT
// Image folders by class: the images found, the split, and errors.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "io_test_util.h"
#include "support/pictures.h"
#include "tensorgrad/data/idx.h"
#include "tensorgrad/data/images.h"

namespace tensorgrad {
namespace {

namespace fs = std::filesystem;
using test::io_error_of;
using test::put_file;
using test::TempDir;
using testing::plain_png;
using testing::png_of_pixels;

// Writes a 1x1 image of this grey value and creates its folder.
void put_picture(const std::string& path, int value) {
  fs::create_directories(fs::path(path).parent_path());
  put_file(path, plain_png(1, 1, 1, static_cast<unsigned char>(value)));
}

// Writes FOLDER/0.png and so on, with grey values from `first` on.
void put_class(const std::string& folder, int count, int first) {
  for (int i = 0; i < count; ++i) {
    put_picture(folder + "/" + std::to_string(i) + ".png", first + i);
  }
}

// Returns the grey values by label. Each value identifies its 1x1 image.
std::map<std::int32_t, std::set<int>> greys_of(const ImageSet& set) {
  std::map<std::int32_t, std::set<int>> greys;
  for (std::size_t i = 0; i < set.labels.size(); ++i) greys[set.labels[i]].insert(set.images[i]);
  return greys;
}

TEST(ClassFolder, holds_out_a_share_of_each_class) {
  const TempDir dir;
  put_class(dir / "dog", 20, 100);
  put_class(dir / "ant", 10, 0);
  put_class(dir / "Cow", 1, 200);
  const LabeledImages data = read_image_folder(dir.str());
  EXPECT_EQ(data.class_names, (std::vector<std::string>{"Cow", "ant", "dog"}));
  EXPECT_EQ(data.classes, 3);
  EXPECT_EQ(data.image_shape, (Shape{1, 1}));
  EXPECT_EQ(data.skipped, 0);
  EXPECT_EQ(data.train.count, 25);
  EXPECT_EQ(data.test.count, 6);
  EXPECT_EQ(data.train.images.size(), 25U);
  std::map<std::int32_t, std::set<int>> train = greys_of(data.train);
  std::map<std::int32_t, std::set<int>> test = greys_of(data.test);
  EXPECT_EQ(train[0], std::set<int>{200}) << "the only one of a class is trained on";
  EXPECT_EQ(test[1].size(), 2U);
  EXPECT_EQ(test[2].size(), 4U);
  for (const std::int32_t label : {1, 2}) {
    std::set<int> all = train[label];
    all.insert(test[label].begin(), test[label].end());
    EXPECT_EQ(all.size(), label == 1 ? 10U : 20U);
    EXPECT_EQ(*all.begin(), label == 1 ? 0 : 100);
  }
}

TEST(ClassFolder, split_and_order_depend_only_on_the_seed) {
  const TempDir dir;
  put_class(dir / "a", 6, 0);
  put_class(dir / "b", 6, 10);
  using Greys = std::vector<std::uint8_t>;
  const LabeledImages zero = read_image_folder(dir.str(), {.holdout = 0.34});
  EXPECT_EQ(zero.train.images, (Greys{5, 0, 15, 13, 10, 1, 12, 3}));
  EXPECT_EQ(zero.test.images, (Greys{2, 14, 4, 11}));
  const LabeledImages seven = read_image_folder(dir.str(), {.holdout = 0.34, .seed = 7});
  EXPECT_EQ(seven.train.images, (Greys{13, 15, 12, 4, 14, 0, 2, 3}));
  EXPECT_EQ(seven.test.images, (Greys{5, 1, 10, 11}));
}

TEST(ClassFolder, many_pictures_keep_their_labels) {
  const TempDir dir;
  for (int c = 0; c < 10; ++c) put_class(dir / ("class" + std::to_string(c)), 20, 20 * c);
  const LabeledImages data = read_image_folder(dir.str(), {.holdout = 0});
  ASSERT_EQ(data.train.count, 200);
  EXPECT_EQ(data.test.count, 0);
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(data.train.images[i] / 20, data.train.labels[i]);
  const std::set<std::int32_t> front(data.train.labels.begin(), data.train.labels.begin() + 40);
  EXPECT_GE(front.size(), 8U) << "the first pictures are of few classes";
}

TEST(ClassFolder, given_split_is_kept) {
  for (const char* const name : {"test", "val", "valid"}) {
    const TempDir dir;
    put_class(dir / "train/a", 3, 0);
    put_class(dir / "train/b", 2, 10);
    put_class(dir / name + "/b", 2, 20);
    const LabeledImages data = read_image_folder(dir.str());
    EXPECT_EQ(data.class_names, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(greys_of(data.train),
              (std::map<std::int32_t, std::set<int>>{{0, {0, 1, 2}}, {1, {10, 11}}}));
    EXPECT_EQ(greys_of(data.test), (std::map<std::int32_t, std::set<int>>{{1, {20, 21}}}));
  }
  const TempDir dir;
  for (const char* const name : {"train", "val", "test"}) {
    put_class(dir / name + "/a", 1, name[0]);
    put_class(dir / name + "/b", 1, name[0]);
  }
  EXPECT_EQ(read_image_folder(dir.str()).test.images[0], 't') << "test goes before val";
  fs::remove_all(dir / "val");
  fs::remove_all(dir / "test");
  put_class(dir / "train/a", 5, 0);
  EXPECT_EQ(read_image_folder(dir.str()).test.count, 1) << "held out of train";
}

TEST(ClassFolder, a_class_may_be_called_train) {
  const TempDir dir;
  put_class(dir / "plane", 5, 0);
  put_class(dir / "train", 5, 10);
  EXPECT_EQ(read_image_folder(dir.str()).class_names, (std::vector<std::string>{"plane", "train"}));
}

TEST(ClassFolder, other_files_are_counted_and_hidden_ones_are_not) {
  const TempDir dir;
  put_class(dir / "a", 5, 0);
  put_class(dir / "b", 4, 10);
  put_picture(dir / "b/UPPER.PNG", 9);
  put_file(dir / "a/notes.txt", "text");
  put_file(dir / "a/cat.webp", "RIFF");
  for (const char* const name : {"a/.hidden.png", "a/Thumbs.db", "b/desktop.ini", "readme.md"}) {
    put_file(dir / name, "x");
  }
  fs::create_directories(dir / "__MACOSX");
  fs::create_directories(dir / ".cache");
  const LabeledImages data = read_image_folder(dir.str());
  EXPECT_EQ(data.skipped, 2);
  EXPECT_EQ(data.train.count + data.test.count, 10);
  EXPECT_EQ(data.classes, 2);
}

TEST(ClassFolder, sizes_are_those_of_the_first_image_or_the_options) {
  const TempDir dir;
  put_class(dir / "a", 5, 0);
  put_class(dir / "b", 4, 10);
  put_file(dir / "b/9.png", plain_png(3, 2, 1));
  const std::string expected =
      (dir / "b/9.png") + ": is an image of [2,3,1]; expected [1,1,1], as in " + (dir / "a/0.png");
  EXPECT_EQ(io_error_of([&] { read_image_folder(dir.str()); }), expected);
  EXPECT_EQ(io_error_of([&] { read_image_folder(dir.str(), {.hint = "turn the knob"}); }),
            expected + "; turn the knob");
  const LabeledImages data = read_image_folder(dir.str(), {.height = 4, .width = 5});
  EXPECT_EQ(data.image_shape, (Shape{4, 5}));
  EXPECT_EQ(data.train.images.size(), 8U * 20U);
}

TEST(ClassFolder, colours_are_those_of_the_first_image_or_the_options) {
  const TempDir dir;
  put_class(dir / "a", 5, 0);
  put_class(dir / "b", 5, 10);
  put_file(dir / "b/9.png", png_of_pixels(1, 1, 3, "\x01\x02\x03"));
  EXPECT_EQ(
      io_error_of([&] { read_image_folder(dir.str()); }),
      (dir / "b/9.png") + ": is an image of [1,1,3]; expected [1,1,1], as in " + (dir / "a/0.png"));
  EXPECT_EQ(read_image_folder(dir.str(), {.channels = 1}).image_shape, (Shape{1, 1}));
  EXPECT_EQ(read_image_folder(dir.str(), {.channels = 3}).image_shape, (Shape{1, 1, 3}));
  // If the first image has colours, grey images are converted without loss.
  put_file(dir / "a/0.png", png_of_pixels(1, 1, 3, "\x01\x02\x03"));
  EXPECT_EQ(read_image_folder(dir.str()).image_shape, (Shape{1, 1, 3}));
}

TEST(ClassFolder, classes_can_be_set) {
  const TempDir dir;
  put_class(dir / "b", 2, 10);
  const LabeledImages data =
      read_image_folder(dir.str(), {.class_names = {"c", "b", "a"}, .holdout = 0});
  EXPECT_EQ(data.classes, 3);
  EXPECT_EQ(data.train.labels, (std::vector<std::int32_t>{1, 1}));
  put_class(dir / "d", 2, 10);
  EXPECT_EQ(io_error_of([&] { read_image_folder(dir.str(), {.class_names = {"c", "b", "a"}}); }),
            (dir / "d") + ": is not one of the 3 known classes, \"c\" to \"a\"");
}

TEST(ClassFolder, errors_name_what_does_not_fit) {
  const TempDir dir;
  const auto error = [&](const ImageFolderOptions& options = {}) {
    return io_error_of([&] { read_image_folder(dir.str(), options); });
  };
  put_class(dir / "a", 2, 0);
  EXPECT_EQ(error(), dir.str() + ": contains only one class, \"a\"; expected at least two folders");
  put_file(dir / "b/x.txt", "");
  fs::create_directories(dir / "b");
  EXPECT_EQ(error(), (dir / "b") + ": contains no images (.png, .jpg, .jpeg, .jfif)");
  put_file(dir / "b/x.gif", "GIF89a");
  EXPECT_EQ(error(),
            (dir / "b") + ": contains no images (.png, .jpg, .jpeg, .jfif), but 1 other files");
  put_file(dir / "b/x.png", "GIF89a");
  EXPECT_EQ(error({.holdout = 0}),
            (dir / "b/x.png") + ": begins with \"GIF89a\"; expected a PNG or JPEG image");
  put_picture(dir / "b/x.png", 3);
  EXPECT_EQ(error(), dir.str() + ": has 3 images in 2 classes, too few for a holdout of 0.2");
  EXPECT_EQ(error({.holdout = 1}), dir.str() + ": holdout must be in [0, 1), got 1");
  EXPECT_EQ(error({.holdout = 0, .max_bytes = 2}),
            dir.str() + ": 3 images of [1,1] exceed the limit of 2 bytes");
  EXPECT_EQ(error({.channels = 4}),
            (dir / "a/0.png") + ": channels must be 1, 3 or 0 (as in the file), got 4");
  put_picture(dir / "b/more/x.png", 3);
  EXPECT_EQ(error(), (dir / "b/more") +
                         ": is a folder inside class \"b\"; expected images, as in "
                         "FOLDER/CLASS/1.png");
}

TEST(ClassFolder, a_split_with_other_classes_is_an_error) {
  const TempDir dir;
  put_class(dir / "train/a", 2, 0);
  put_class(dir / "train/b", 2, 0);
  fs::create_directories(dir / "test");
  const auto error = [&] { return io_error_of([&] { read_image_folder(dir.str()); }); };
  EXPECT_EQ(error(), (dir / "test") + ": contains no folders of images");
  put_class(dir / "test/c", 2, 0);
  EXPECT_EQ(error(), (dir / "test/c") + ": is not one of the 2 known classes, \"a\" to \"b\"");
}

#ifndef _WIN32  // where names are UTF-16
TEST(ClassFolder, a_name_that_is_not_utf8_is_an_error) {
  const TempDir dir;
  put_class(dir / "a", 2, 0);
  put_class(dir / "b\xff", 2, 0);
  EXPECT_EQ(io_error_of([&] { read_image_folder(dir.str()); }),
            dir.str() + ": the class name \"b\\xff\" is not plain UTF-8");
}
#endif

}  // namespace
}  // namespace tensorgrad
