// SPDX-License-Identifier: MIT
// Sources and sinks of functions that read or write files: a path, or bytes in memory.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace detail {
/// Name that errors use for data in memory, which has no path.
inline constexpr const char* kInMemory = "<memory>";

/// A path: a string, a string literal or a std::filesystem::path.
template <class T>
concept PathLike = std::convertible_to<const T&, std::string>;

/// A contiguous range of bytes.
template <class T>
concept ByteRange = std::convertible_to<const T&, std::span<const std::byte>>;

/// A range of bytes that owns them, such as a vector; not a view, such as a span.
template <class T>
concept OwnedByteRange = ByteRange<T> && std::ranges::range<T> && !std::ranges::borrowed_range<T>;
}  // namespace detail

/// File or bytes in memory that a function reads. Converts from a path and from bytes:
///
///     trainer.load("run.safetensors");
///     trainer.load(bytes);
///     tg::read_idx({bytes, "train-labels"});  // with a name for error messages
///
/// Both have the same results and errors. Bytes are not copied and must outlive the source, unless
/// a vector is moved in, which copies of the source share.
class FileSource {
 public:
  /// Creates a source that is a file. Does not open it.
  template <detail::PathLike Path>
  FileSource(const Path& path) : name_(path) {}  // NOLINT(google-explicit-constructor)

  /// Creates a source of bytes. `name` stands for the path in errors.
  template <detail::OwnedByteRange Bytes>
  FileSource(const Bytes& bytes TENSORGRAD_LIFETIMEBOUND,  // NOLINT(google-explicit-constructor)
             std::string name = detail::kInMemory)
      : name_(std::move(name)), bytes_(bytes), in_memory_(true) {}
  template <detail::ByteRange Bytes>
  FileSource(const Bytes& bytes,  // NOLINT(google-explicit-constructor)
             std::string name = detail::kInMemory)
      : name_(std::move(name)), bytes_(bytes), in_memory_(true) {}

  /// Creates a source that owns its bytes.
  FileSource(std::vector<std::byte>&& bytes,  // NOLINT(google-explicit-constructor)
             std::string name = detail::kInMemory);

  /// Returns a source of the bytes of a text, which must outlive it.
  static FileSource text(std::string_view text TENSORGRAD_LIFETIMEBOUND,
                         std::string name = detail::kInMemory) {
    return {std::as_bytes(std::span(text)), std::move(name)};
  }

  /// Returns the path, or the name of the bytes.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Returns whether the source is bytes in memory.
  [[nodiscard]] bool in_memory() const { return in_memory_; }

  /// Returns the bytes; empty if the source is a file. read_file() returns those of both. The span
  /// is valid as long as the source.
  [[nodiscard]] std::span<const std::byte> bytes() const TENSORGRAD_LIFETIMEBOUND { return bytes_; }

 private:
  friend class FolderSource;

  std::string name_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const std::vector<std::byte>> owned_;
  bool in_memory_ = false;
};

/// File or vector of bytes that a function writes. Converts from a path and from a vector:
///
///     trainer.save("run.safetensors");
///     std::vector<std::byte> bytes;
///     trainer.save(bytes);
///
/// The vector gets the bytes that the file would have, in place of its content. If the function
/// throws, the file or vector is unchanged.
class FileSink {
 public:
  /// Creates a sink that is a file. Does not open it.
  template <detail::PathLike Path>
  FileSink(const Path& path) : name_(path) {}  // NOLINT(google-explicit-constructor)

  /// Creates a sink that is a vector, which must outlive it. `name` stands for the path in errors.
  FileSink(std::vector<std::byte>& bytes,  // NOLINT(google-explicit-constructor)
           std::string name = detail::kInMemory)
      : name_(std::move(name)), bytes_(&bytes) {}

  /// Returns the path, or the name of the bytes.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Returns the vector, or null if the sink is a file.
  [[nodiscard]] std::vector<std::byte>* bytes() const { return bytes_; }

 private:
  std::string name_;
  std::vector<std::byte>* bytes_ = nullptr;
};

/// Folder that a function reads: one in the file system, or files in memory by name. Converts from
/// a path and from a map:
///
///     tg::lm::load_pretrained("mamba-130m");
///     tg::lm::load_pretrained({{"config.json", config}, {"model.safetensors", weights}});
///
/// Names of files in subfolders contain slashes: "train/cat/1.png". Bytes are not copied, unless a
/// map of vectors is moved in, whose bytes the folder owns; see FileSource.
class FolderSource {
 public:
  /// Creates a folder in the file system. Does not open it.
  template <detail::PathLike Path>
  FolderSource(const Path& path) : name_(path) {}  // NOLINT(google-explicit-constructor)

  /// Creates a folder of files in memory, from pairs of a name and what a FileSource converts from.
  /// `name` stands for the folder's path in errors. Throws UserError if a name occurs twice, is
  /// also that of a folder, or has an empty part, such as "/config.json" or "".
  FolderSource(std::initializer_list<std::pair<std::string, FileSource>> files)
      : FolderSource(std::vector(files)) {}
  template <class Files>
    requires(!detail::PathLike<Files> &&
             requires(const Files& files) {
               { files.begin()->first } -> std::convertible_to<std::string>;
               { files.begin()->second } -> std::convertible_to<FileSource>;
             })
  FolderSource(Files&& files,  // NOLINT(google-explicit-constructor)
               std::string name = detail::kInMemory)
      : name_(std::move(name)) {
    FileMap all;
    for (auto& [file, bytes] : files) {
      if constexpr (std::is_lvalue_reference_v<Files>) {
        add(all, file, bytes);
      } else {
        add(all, file, std::move(bytes));
      }
    }
    take(std::move(all));
  }

  /// Returns the path, or the name of the folder in memory.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Returns whether the folder exists. One in memory always does.
  [[nodiscard]] bool exists() const;

  /// Returns whether the folder has a file or a folder of this name.
  [[nodiscard]] bool has_file(std::string_view name) const;
  [[nodiscard]] bool has_folder(std::string_view name) const;

  /// Returns a file of the folder, named by its path in errors. Throws IoError if a folder in
  /// memory does not have it.
  [[nodiscard]] FileSource file(std::string_view name) const;

  /// Returns a folder of the folder.
  [[nodiscard]] FolderSource folder(std::string_view name) const;

  /// Returns the names of files and folders in the folder, sorted by their bytes. Those of folders
  /// end with a slash. Throws IoError if the folder cannot be read.
  [[nodiscard]] std::vector<std::string> entries() const;

 private:
  using FileMap = std::map<std::string, FileSource>;
  static void add(FileMap& all, const std::string& name, FileSource file);
  void take(FileMap&& files);
  [[nodiscard]] std::string path_of(std::string_view name) const;

  std::string name_;
  std::shared_ptr<const FileMap> files_;  // null: in the file system
  std::string prefix_;                    // of the names in files_; ends with a slash if not empty
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
