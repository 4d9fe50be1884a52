// SPDX-License-Identifier: MIT
// Input of readers: a regular file or bytes in memory. The size is known before anything is
// allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorgrad/data/file_source.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// A source that is read in parts.
class InputFile {
 public:
  // Throws IoError if a file is missing, unreadable, a folder, a device or a pipe.
  explicit InputFile(FileSource source);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::string& name() const { return source_.name(); }
  // Returns the size at the time when the file was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Fills `out` from byte `offset`. Throws IoError if there are fewer bytes.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  [[noreturn]] void fail_truncated(std::uint64_t offset, std::uint64_t missing) const;

  FileSource source_;
  int fd_ = -1;  // -1 for bytes in memory
  std::uint64_t size_ = 0;
};

// All bytes of a source. Refers to bytes in memory, and reads files.
class Content {
 public:
  // Throws IoError as read_file().
  explicit Content(const FileSource& source, std::uint64_t max_bytes = UINT64_MAX);
  explicit Content(std::vector<std::byte> bytes) : read_(std::move(bytes)), bytes_(read_) {}

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  // Returns the bytes as a vector; copies them if they were in memory.
  [[nodiscard]] std::vector<std::byte> take() &&;

  Content(Content&&) = default;
  Content& operator=(Content&&) = default;
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;
  ~Content() = default;

 private:
  std::vector<std::byte> read_;
  std::span<const std::byte> bytes_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
