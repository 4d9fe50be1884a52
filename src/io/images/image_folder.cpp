// SPDX-License-Identifier: MIT
// Reads a folder of four IDX files in the layout of MNIST and Fashion-MNIST: finds the files by
// name and checks that they match. Other folders are read by class_folder.cpp.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/path.h"
#include "io/images/class_folder.h"
#include "io/input_file.h"
#include "io/text.h"
#include "tensorgrad/data/idx.h"
#include "tensorgrad/data/images.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxClasses = 65'536;
constexpr std::uint64_t kMaxClassFile = 1 << 20;

// Returns the endings that may follow "train-images" or "train-labels", best first.
std::vector<std::string> endings(const std::string& rank) {
  std::vector<std::string> all;
  for (const char* zip : {"", ".gz"}) {
    for (const char* joint : {"-", "."}) all.push_back(joint + ("idx" + rank + "-ubyte") + zip);
    for (const char* plain : {"", ".idx", "-ubyte"}) all.push_back(std::string(plain) + zip);
  }
  return all;
}

// Returns the first file in `folder` whose name is one of `stems` and an ending with any rank from
// 1 to 9.
FileSource find_file(const FolderSource& folder, const std::vector<std::string>& stems) {
  for (const std::string& stem : stems) {
    for (const char* rank : {"3", "1", "4", "2", "5", "6", "7", "8", "9"}) {
      for (const std::string& ending : endings(rank)) {
        if (folder.has_file(stem + ending)) return folder.file(stem + ending);
      }
    }
  }
  const bool images = stems[0].ends_with("images");
  std::string wanted;
  for (const std::string& stem : stems) {
    if (!wanted.empty()) wanted += " or ";
    wanted += stem + (images ? "-idx3-ubyte[.gz]" : "-idx1-ubyte[.gz]");
  }
  throw IoError(folder.name() + ": no file " + wanted + " in this folder" +
                (stems[0] == "train-images" ? ", nor a folder of images for each class" : ""));
}

std::int64_t label_at(const IdxArray& array, std::size_t i) {
  const auto as = [&]<typename T>(T value) {
    std::memcpy(&value, array.bytes.data() + i * sizeof(T), sizeof(T));
    return static_cast<std::int64_t>(value);
  };
  switch (array.element) {
    case IdxElement::kU8: return as(std::uint8_t{});
    case IdxElement::kI8: return as(std::int8_t{});
    case IdxElement::kI16: return as(std::int16_t{});
    default: return as(std::int32_t{});
  }
}

// Reads labels as i32. Throws IoError unless each is in [0, limit).
std::vector<std::int32_t> read_labels(const FileSource& source, std::int64_t limit) {
  const IdxArray array = read_idx(source);
  const std::string& path = source.name();
  const bool integers = array.element != IdxElement::kF32 && array.element != IdxElement::kF64;
  if (array.shape.size() != 1 || !integers) {
    throw IoError(path + ": contains " + std::string(to_string(array.element)) + " " +
                  to_string(array.shape) + "; expected one integer per image");
  }
  std::vector<std::int32_t> labels(static_cast<std::size_t>(array.shape[0]));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int64_t label = label_at(array, i);
    if (label < 0 || label >= limit) {
      throw IoError(path + ": label " + std::to_string(label) + " at byte " +
                    std::to_string(8 + i * idx_element_bytes(array.element)) + ": expected 0 to " +
                    std::to_string(limit - 1));
    }
    labels[i] = static_cast<std::int32_t>(label);
  }
  return labels;
}

struct ReadSet {
  ImageSet set;
  Shape image_shape;
};

ReadSet read_set(const FileSource& images_file, const FileSource& labels_file, std::int64_t limit) {
  const IdxArray images = read_idx(images_file);
  if (images.element != IdxElement::kU8 || images.shape.size() < 2) {
    throw IoError(images_file.name() + ": contains " + std::string(to_string(images.element)) +
                  " " + to_string(images.shape) + "; expected u8 images [count, height, width]");
  }
  ReadSet read;
  read.set.labels = read_labels(labels_file, limit);
  read.set.count = images.shape[0];
  if (static_cast<std::size_t>(read.set.count) != read.set.labels.size()) {
    throw IoError(labels_file.name() + ": contains " + std::to_string(read.set.labels.size()) +
                  " labels; expected " + std::to_string(read.set.count) + ", one per image of " +
                  images_file.name());
  }
  read.image_shape.assign(images.shape.begin() + 1, images.shape.end());
  read.set.images.resize(images.bytes.size());
  std::memcpy(read.set.images.data(), images.bytes.data(), images.bytes.size());
  return read;
}

// Returns the lines of classes.txt, or an empty list if there is no such file.
std::vector<std::string> read_class_names(const FolderSource& folder) {
  if (!folder.has_file("classes.txt")) return {};
  const FileSource source = folder.file("classes.txt");
  const std::string& path = source.name();
  const io::Content content(source, kMaxClassFile);
  std::vector<std::string> names;
  std::string_view rest = content.text();
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || !io::is_plain_utf8(line)) {
      throw IoError(path + ": line " + std::to_string(names.size() + 1) +
                    ": expected a class name in UTF-8");
    }
    names.emplace_back(line);
  }
  if (names.empty()) throw IoError(path + ": is empty; expected one class name per line");
  return names;
}

bool named_like_fashion_mnist(const std::string& folder) {
  std::error_code ignored;
  std::string text = utf8_text(fs::weakly_canonical(utf8_path(folder), ignored));
  std::erase_if(text, [](unsigned char c) { return std::isalnum(c) == 0; });
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.find("fashionmnist") != std::string::npos;
}

std::vector<std::string> default_class_names(const std::string& folder, int classes) {
  if (classes == 10 && named_like_fashion_mnist(folder)) {
    return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
            "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  }
  std::vector<std::string> names;
  for (int i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

// Throws if the requested size or channels differ from those of the file.
void check_asked(const std::string& path, Shape shape, const ImageFolderOptions& asked) {
  const std::string what = to_string(shape);
  if (shape.size() == 3 && shape[2] == 1) shape.pop_back();
  Shape wanted = shape;
  wanted.resize(asked.channels != 0 ? 2 : std::max<std::size_t>(shape.size(), 2));
  if (asked.height != 0 || asked.width != 0) {
    wanted[0] = asked.height;
    wanted[1] = asked.width;
  }
  if (asked.channels > 1) wanted.push_back(asked.channels);
  if (wanted == shape) return;
  throw IoError(path + ": images are " + what + "; expected " + to_string(wanted) +
                " (IDX images are not resized or converted)");
}

}  // namespace

LabeledImages read_image_folder(const FolderSource& folder, const ImageFolderOptions& options) {
  if (!folder.exists()) {
    throw IoError(folder.name() +
                  ": is not a folder; expected a folder with train-images-idx3-ubyte[.gz] or with "
                  "a folder of images for each class");
  }
  if (io::is_class_folder(folder)) return io::read_class_folder(folder, options);
  const FileSource train_images = find_file(folder, {"train-images"});
  const FileSource train_labels = find_file(folder, {"train-labels"});
  const FileSource test_images = find_file(folder, {"t10k-images", "test-images"});
  const FileSource test_labels = find_file(folder, {"t10k-labels", "test-labels"});
  LabeledImages data;
  data.class_names = read_class_names(folder);
  const std::size_t named = data.class_names.size();
  ReadSet train = read_set(train_images, train_labels,
                           named > 0 ? static_cast<std::int64_t>(named) : kMaxClasses);
  data.classes = named > 0
                     ? static_cast<int>(named)
                     : *std::max_element(train.set.labels.begin(), train.set.labels.end()) + 1;
  ReadSet test = read_set(test_images, test_labels, data.classes);
  if (train.image_shape != test.image_shape) {
    throw IoError(test_images.name() + ": images are " + to_string(test.image_shape) +
                  "; expected " + to_string(train.image_shape) + ", as in " + train_images.name());
  }
  if (options.height != 0 || options.width != 0 || options.channels != 0) {
    check_asked(train_images.name(), train.image_shape, options);
  }
  if (named == 0) data.class_names = default_class_names(folder.name(), data.classes);
  data.image_shape = std::move(train.image_shape);
  data.train = std::move(train.set);
  data.test = std::move(test.set);
  return data;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
