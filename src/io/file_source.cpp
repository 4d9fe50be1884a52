// SPDX-License-Identifier: MIT
// Byte sources, and folders of them, in the file system and in memory.
#include "tensorgrad/data/file_source.h"
#include "base/path.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

namespace fs = std::filesystem;

std::string_view without_slash(std::string_view entry) {
  if (entry.ends_with('/')) entry.remove_suffix(1);
  return entry;
}

bool has_empty_part(const std::string& name) {
  return name.empty() || name.starts_with('/') || name.ends_with('/') ||
         name.find("//") != std::string::npos;
}

}  // namespace

FileSource::FileSource(std::vector<std::byte>&& bytes, std::string name)
    : name_(std::move(name)),
      owned_(std::make_shared<const std::vector<std::byte>>(std::move(bytes))),
      in_memory_(true) {
  bytes_ = *owned_;
}

void FolderSource::add(FileMap& all, const std::string& name, FileSource file) {
  const auto refuse = [&](const std::string& what) {
    throw UserError("folder in memory: the file name " + io::in_quotes(name) + what);
  };
  if (has_empty_part(name)) refuse(" has an empty part");
  if (!all.emplace(name, std::move(file)).second) refuse(" occurs twice");
}

void FolderSource::take(FileMap&& files) {
  for (const auto& [name, file] : files) {
    for (std::size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1)) {
      if (!files.contains(name.substr(0, at))) continue;
      throw UserError("folder in memory: " + io::in_quotes(name.substr(0, at)) +
                      " is both a file and the folder of " + io::in_quotes(name));
    }
  }
  files_ = std::make_shared<const FileMap>(std::move(files));
}

std::string FolderSource::path_of(std::string_view name) const {
  return utf8_text(utf8_path(name_) / utf8_path(name));
}

bool FolderSource::exists() const {
  std::error_code ignored;
  return files_ != nullptr || fs::is_directory(utf8_path(name_), ignored);
}

bool FolderSource::has_file(std::string_view name) const {
  if (files_) return files_->contains(prefix_ + std::string(name));
  std::error_code ignored;
  const fs::file_status status = fs::status(utf8_path(path_of(name)), ignored);
  return fs::exists(status) && !fs::is_directory(status);
}

bool FolderSource::has_folder(std::string_view name) const {
  if (files_) {
    const std::string prefix = prefix_ + std::string(name) + "/";
    const auto first = files_->lower_bound(prefix);
    return first != files_->end() && first->first.starts_with(prefix);
  }
  std::error_code ignored;
  return fs::is_directory(utf8_path(path_of(name)), ignored);
}

FileSource FolderSource::file(std::string_view name) const {
  const std::string path = path_of(name);
  if (!files_) return path;
  const auto found = files_->find(prefix_ + std::string(name));
  if (found == files_->end())
    throw IoError(path + ": cannot be opened: " + io::system_error_text(ENOENT));
  FileSource file = found->second;
  if (file.in_memory()) file.name_ = path;
  return file;
}

FolderSource FolderSource::folder(std::string_view name) const {
  FolderSource inner = *this;
  inner.name_ = path_of(name);
  inner.prefix_ += std::string(name) + "/";
  return inner;
}

std::vector<std::string> FolderSource::entries() const {
  std::vector<std::string> names;
  if (files_) {
    for (auto at = files_->lower_bound(prefix_);
         at != files_->end() && at->first.starts_with(prefix_); ++at) {
      const std::size_t slash = at->first.find('/', prefix_.size());
      const std::size_t end = slash == std::string::npos ? slash : slash + 1 - prefix_.size();
      std::string name = at->first.substr(prefix_.size(), end);
      if (names.empty() || names.back() != name) names.push_back(std::move(name));
    }
  } else {
    try {
      for (const fs::directory_entry& entry : fs::directory_iterator(utf8_path(name_))) {
        names.push_back(utf8_text(entry.path().filename()));
        std::error_code ignored;
        if (fs::is_directory(entry.path(), ignored)) names.back() += '/';
      }
    } catch (const fs::filesystem_error& error) {
      const int code = error.code().default_error_condition().value();
      throw IoError(name_ + ": cannot be read: " + io::system_error_text(code));
    }
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return without_slash(a) < without_slash(b);
  });
  return names;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
