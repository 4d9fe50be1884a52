// SPDX-License-Identifier: MIT
// Lists the pictures of a class folder, holds some out, and reads them.
#include "io/class_folder.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <utility>

#include "base/numbers.h"
#include "base/parallel.h"
#include "io/random.h"
#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostReaders = 16;  // threads
constexpr const char* kPictureEndings[] = {".png", ".jpg", ".jpeg", ".jfif"};

// Sorted by their names; without what is hidden or put there by a system.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with('.') || name == "Thumbs.db" || name == "desktop.ini" ||
          name == "__MACOSX") {
        continue;
      }
      entries.push_back(entry);
    }
  } catch (const fs::filesystem_error& error) {
    throw IoError(folder.string() + ": cannot be read: " + system_error_text(error.code().value()));
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.path().filename().string() < b.path().filename().string();
  });
  return entries;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    if (is_folder(entry.path())) names.push_back(entry.path().filename().string());
  }
  return names;
}

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(std::begin(kPictureEndings), std::end(kPictureEndings), ending) !=
         std::end(kPictureEndings);
}

struct PictureFile {
  std::string path;
  std::int32_t label = 0;
};

void shuffle(std::span<PictureFile> files, std::uint64_t& random) {
  for (std::size_t i = files.size(); i > 1; --i) {
    std::swap(files[i - 1], files[next_random(random) % i]);
  }
}

class ClassFolder {
 public:
  ClassFolder(const std::string& folder, const ImageFolderOptions& options)
      : folder_(folder), options_(options) {}

  LabeledImages read() {
    if (!(options_.holdout >= 0.0 && options_.holdout < 1.0)) {
      fail("holdout must be in [0, 1), got " + number_text(options_.holdout));
    }
    fs::path train = folder_;
    fs::path test;
    if (is_folder(train / "train") && !folders_in(train / "train").empty()) {
      for (const char* const name : {"valid", "val", "test"}) {  // the last that is there
        if (is_folder(train / name)) test = train / name;
      }
      train /= "train";
    }
    name_classes(train);
    train_ = list(train);
    read_first();
    std::uint64_t random = options_.seed;
    if (test.empty()) {
      hold_out(random);
    } else {
      test_ = list(test);
    }
    check_bytes();
    shuffle(train_, random);
    shuffle(test_, random);
    read_set(train_, data_.train);
    read_set(test_, data_.test);
    return std::move(data_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw IoError(folder_ + ": " + what); }
  [[nodiscard]] std::string hint() const {
    return options_.hint.empty() ? "" : "; " + options_.hint;
  }

  void name_classes(const fs::path& folder) {
    data_.class_names = options_.class_names;
    if (data_.class_names.empty()) {
      data_.class_names = folders_in(folder);
      if (data_.class_names.size() == 1) {
        throw IoError(folder.string() + ": contains only one class, " +
                      in_quotes(data_.class_names[0]) + "; expected at least two folders");
      }
    }
    for (std::size_t i = 0; i < data_.class_names.size(); ++i) {
      if (!is_plain_utf8(data_.class_names[i])) {
        throw IoError(folder.string() + ": the class name " + in_quotes(data_.class_names[i]) +
                      " is not plain UTF-8");
      }
      labels_.emplace(data_.class_names[i], static_cast<std::int32_t>(i));
    }
    data_.classes = static_cast<int>(data_.class_names.size());
  }

  // The pictures of all classes, class by class.
  std::vector<PictureFile> list(const fs::path& folder) {
    std::vector<PictureFile> files;
    for (const std::string& name : folders_in(folder)) {
      const std::string path = (folder / name).string();
      const auto label = labels_.find(name);
      if (label == labels_.end()) {
        throw IoError(path + ": is not one of the " + std::to_string(data_.classes) +
                      " known classes, " + in_quotes(data_.class_names.front(), 30) + " to " +
                      in_quotes(data_.class_names.back(), 30));
      }
      const std::size_t before = files.size();
      std::int64_t others = 0;
      for (const fs::directory_entry& entry : entries_of(path)) {
        if (is_folder(entry.path())) {
          throw IoError(entry.path().string() + ": is a folder inside class " + in_quotes(name) +
                        "; expected images, as in FOLDER/CLASS/1.png");
        }
        if (is_picture(entry.path())) {
          files.push_back({entry.path().string(), label->second});
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
    if (files.empty()) throw IoError(folder.string() + ": contains no folders of images");
    return files;
  }

  // What all pictures are to be like.
  void read_first() {
    first_ = train_[0].path;
    const Image first = read_image(
        first_,
        {.height = options_.height, .width = options_.width, .channels = options_.channels});
    wanted_ = {.height = first.height, .width = first.width, .channels = first.channels};
    data_.image_shape = {first.height, first.width};
    if (first.channels > 1) data_.image_shape.push_back(first.channels);
  }

  // A share of each class, but never all of it.
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

  // Decoding takes a millisecond and more each. Which thread reads a picture changes nothing: its
  // place is its own, and of several errors it is that of the first file that is thrown.
  void read_set(const std::vector<PictureFile>& files, ImageSet& set) const {
    const auto each = static_cast<std::size_t>(numel(data_.image_shape));
    set.count = static_cast<std::int64_t>(files.size());
    set.images.resize(files.size() * each);
    for (const PictureFile& file : files) set.labels.push_back(file.label);
    in_parallel(files.size(), kMostReaders, [&](std::size_t i) {
      const Image image = read_one(files[i].path);
      std::memcpy(set.images.data() + i * each, image.pixels.data(), each);
    });
  }

  [[nodiscard]] Image read_one(const std::string& path) const {
    // Nobody said that colours may be lost: then they are read, to be seen.
    const bool keep_colour = wanted_.channels == 1 && options_.channels == 0;
    Image image = read_image(path, {.height = options_.height,
                                    .width = options_.width,
                                    .channels = keep_colour ? 0 : wanted_.channels});
    if (image.height != wanted_.height || image.width != wanted_.width ||
        image.channels != wanted_.channels) {
      throw IoError(path + ": is an image of " +
                    to_string(Shape{image.height, image.width, image.channels}) + "; expected " +
                    to_string(Shape{wanted_.height, wanted_.width, wanted_.channels}) + ", as in " +
                    first_ + hint());
    }
    return image;
  }

  const std::string& folder_;
  const ImageFolderOptions& options_;
  std::map<std::string, std::int32_t> labels_;
  std::vector<PictureFile> train_, test_;
  std::string first_;  // the picture whose size is everyone's
  Image wanted_;       // without pixels
  LabeledImages data_;
};

}  // namespace

bool is_class_folder(const std::string& folder) {
  bool folders = false;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    if (is_folder(entry.path())) {
      folders = true;
    } else if (entry.path().filename().string().starts_with("train-images")) {
      return false;
    }
  }
  return folders;
}

LabeledImages read_class_folder(const std::string& folder, const ImageFolderOptions& options) {
  return ClassFolder(folder, options).read();
}

}  // namespace tensorgrad::io
