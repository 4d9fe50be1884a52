// SPDX-License-Identifier: MIT
// Lists the images of a class folder, splits off a test set, and reads them.
#include "io/images/class_folder.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/numbers.h"
#include "base/parallel.h"
#include "base/path.h"
#include "io/random.h"
#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxReaders = 16;  // threads
constexpr const char* kPictureEndings[] = {".png", ".jpg", ".jpeg", ".jfif"};

// Returns the entries without hidden and system files.
std::vector<std::string> entries_of(const FolderSource& folder) {
  std::vector<std::string> entries = folder.entries();
  std::erase_if(entries, [](const std::string& name) {
    return name.starts_with('.') || name == "Thumbs.db" || name == "desktop.ini" ||
           name == "__MACOSX/" || name == "__MACOSX";
  });
  return entries;
}

bool is_folder(const std::string& entry) { return entry.ends_with('/'); }

std::vector<std::string> folders_in(const FolderSource& folder) {
  std::vector<std::string> names;
  for (std::string& entry : entries_of(folder)) {
    if (!is_folder(entry)) continue;
    entry.pop_back();
    names.push_back(std::move(entry));
  }
  return names;
}

bool is_picture(const std::string& name) {
  std::string ending = utf8_text(utf8_path(name).extension());
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(std::begin(kPictureEndings), std::end(kPictureEndings), ending) !=
         std::end(kPictureEndings);
}

struct PictureFile {
  FileSource source;
  std::int32_t label = 0;
};

void shuffle(std::span<PictureFile> files, std::uint64_t& random) {
  for (std::size_t i = files.size(); i > 1; --i) {
    std::swap(files[i - 1], files[next_random(random) % i]);
  }
}

class ClassFolder {
 public:
  ClassFolder(const FolderSource& folder, const ImageFolderOptions& options)
      : folder_(folder), options_(options) {}

  LabeledImages read() {
    if (!(options_.holdout >= 0.0 && options_.holdout < 1.0)) {
      fail("holdout must be in [0, 1), got " + number_text(options_.holdout));
    }
    FolderSource train = folder_;
    std::optional<FolderSource> test;
    if (folder_.has_folder("train") && !folders_in(folder_.folder("train")).empty()) {
      for (const char* const name : {"valid", "val", "test"}) {  // the last one that exists
        if (folder_.has_folder(name)) test = folder_.folder(name);
      }
      train = folder_.folder("train");
    }
    name_classes(train);
    train_ = list(train);
    read_first();
    std::uint64_t random = options_.seed;
    if (!test) {
      hold_out(random);
    } else {
      test_ = list(*test);
    }
    check_bytes();
    shuffle(train_, random);
    shuffle(test_, random);
    read_set(train_, data_.train);
    read_set(test_, data_.test);
    return std::move(data_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw IoError(folder_.name() + ": " + what);
  }
  [[nodiscard]] std::string hint() const {
    return options_.hint.empty() ? "" : "; " + options_.hint;
  }

  void name_classes(const FolderSource& folder) {
    data_.class_names = options_.class_names;
    if (data_.class_names.empty()) {
      data_.class_names = folders_in(folder);
      if (data_.class_names.size() == 1) {
        throw IoError(folder.name() + ": contains only one class, " +
                      in_quotes(data_.class_names[0]) + "; expected at least two folders");
      }
    }
    for (std::size_t i = 0; i < data_.class_names.size(); ++i) {
      if (!is_plain_utf8(data_.class_names[i])) {
        throw IoError(folder.name() + ": the class name " + in_quotes(data_.class_names[i]) +
                      " is not plain UTF-8");
      }
      labels_.emplace(data_.class_names[i], static_cast<std::int32_t>(i));
    }
    data_.classes = static_cast<int>(data_.class_names.size());
  }

  // Returns the images of all classes, class by class.
  std::vector<PictureFile> list(const FolderSource& folder) {
    std::vector<PictureFile> files;
    for (const std::string& name : folders_in(folder)) {
      const FolderSource pictures = folder.folder(name);
      const std::string& path = pictures.name();
      const auto label = labels_.find(name);
      if (label == labels_.end()) {
        throw IoError(path + ": is not one of the " + std::to_string(data_.classes) +
                      " known classes, " + in_quotes(data_.class_names.front(), 30) + " to " +
                      in_quotes(data_.class_names.back(), 30));
      }
      const std::size_t before = files.size();
      std::int64_t others = 0;
      for (const std::string& entry : entries_of(pictures)) {
        if (is_folder(entry)) {
          throw IoError(pictures.folder(entry.substr(0, entry.size() - 1)).name() +
                        ": is a folder inside class " + in_quotes(name) +
                        "; expected images, as in FOLDER/CLASS/1.png");
        }
        if (is_picture(entry)) {
          files.push_back({pictures.file(entry), label->second});
        } else {
          ++others;
        }
      }
      if (files.size() == before) {
        throw IoError(path + ": contains no images (.png, .jpg, .jpeg, .jfif)" +
                      (others > 0 ? ", but " + std::to_string(others) + " other files" : ""));
      }
      data_.skipped += others;
    }
    if (files.empty()) throw IoError(folder.name() + ": contains no folders of images");
    return files;
  }

  // Reads the first image, which determines the size and channels of all.
  void read_first() {
    first_ = train_[0].source.name();
    const Image first = read_image(
        train_[0].source,
        {.height = options_.height, .width = options_.width, .channels = options_.channels});
    wanted_ = {.height = first.height, .width = first.width, .channels = first.channels};
    data_.image_shape = {first.height, first.width};
    if (first.channels > 1) data_.image_shape.push_back(first.channels);
  }

  // Moves a share of each class to the test set, but never a whole class.
  void hold_out(std::uint64_t& random) {
    if (options_.holdout == 0.0) return;
    const std::vector<PictureFile> all = std::move(train_);
    train_.clear();
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      while (end < all.size() && all[end].label == all[begin].label) ++end;
      std::vector<PictureFile> files(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                     all.begin() + static_cast<std::ptrdiff_t>(end));
      shuffle(files, random);
      const auto share = std::llround(options_.holdout * static_cast<double>(files.size()));
      const auto held = std::min<std::int64_t>(share, static_cast<std::int64_t>(files.size()) - 1);
      test_.insert(test_.end(), files.begin(), files.begin() + held);
      train_.insert(train_.end(), files.begin() + held, files.end());
    }
    if (test_.empty()) {
      fail("has " + std::to_string(all.size()) + " images in " + std::to_string(data_.classes) +
           " classes, too few for a holdout of " + number_text(options_.holdout));
    }
  }

  void check_bytes() const {
    const auto each = static_cast<std::uint64_t>(numel(data_.image_shape));
    const std::uint64_t count = train_.size() + test_.size();
    if (count <= options_.max_bytes / each) return;
    fail(std::to_string(count) + " images of " + to_string(data_.image_shape) +
         " exceed the limit of " + std::to_string(options_.max_bytes) + " bytes" + hint());
  }

  // Decodes images in parallel, since each takes a millisecond or more. The result does not depend
  // on the number of threads: each image has its own position, and of several errors, that of the
  // first file is thrown.
  void read_set(const std::vector<PictureFile>& files, ImageSet& set) const {
    const auto each = static_cast<std::size_t>(numel(data_.image_shape));
    set.count = static_cast<std::int64_t>(files.size());
    set.images.resize(files.size() * each);
    for (const PictureFile& file : files) set.labels.push_back(file.label);
    in_parallel(files.size(), kMaxReaders, [&](std::size_t i) {
      const Image image = read_one(files[i].source);
      std::memcpy(set.images.data() + i * each, image.pixels.data(), each);
    });
  }

  [[nodiscard]] Image read_one(const FileSource& source) const {
    // If no channels are requested and the first image is gray, reads images with their own
    // channels. A color image is then reported below instead of losing its colors.
    const bool keep_colour = wanted_.channels == 1 && options_.channels == 0;
    Image image = read_image(source, {.height = options_.height,
                                      .width = options_.width,
                                      .channels = keep_colour ? 0 : wanted_.channels});
    if (image.height != wanted_.height || image.width != wanted_.width ||
        image.channels != wanted_.channels) {
      throw IoError(source.name() + ": is an image of " +
                    to_string(Shape{image.height, image.width, image.channels}) + "; expected " +
                    to_string(Shape{wanted_.height, wanted_.width, wanted_.channels}) + ", as in " +
                    first_ + hint());
    }
    return image;
  }

  const FolderSource& folder_;
  const ImageFolderOptions& options_;
  std::map<std::string, std::int32_t> labels_;
  std::vector<PictureFile> train_, test_;
  std::string first_;  // the image that determines the size
  Image wanted_;       // without pixels
  LabeledImages data_;
};

}  // namespace

bool is_class_folder(const FolderSource& folder) {
  bool folders = false;
  for (const std::string& entry : entries_of(folder)) {
    if (is_folder(entry)) {
      folders = true;
    } else if (entry.starts_with("train-images")) {
      return false;
    }
  }
  return folders;
}

LabeledImages read_class_folder(const FolderSource& folder, const ImageFolderOptions& options) {
  return ClassFolder(folder, options).read();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
