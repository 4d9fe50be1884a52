// SPDX-License-Identifier: MIT
// What a reader reads: a regular file, or bytes in memory, whose size is known before anything is
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
  // IoError if a file is missing, unreadable, a folder, a device or a pipe.
  explicit InputFile(FileSource source);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::string& name() const { return source_.name(); }
  // As it was when the file was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Fills `out` from byte `offset`. IoError if there are not that many bytes.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  [[noreturn]] void fail_truncated(std::uint64_t offset, std::uint64_t missing) const;

  FileSource source_;
  int fd_ = -1;  // of a file
  std::uint64_t size_ = 0;
};

// All bytes of a source: those in memory as they are, those of a file read.
class Content {
 public:
  // IoError: as read_file().
  explicit Content(const FileSource& source, std::uint64_t max_bytes = UINT64_MAX);
  explicit Content(std::vector<std::byte> bytes) : read_(std::move(bytes)), bytes_(read_) {}

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  // The bytes as a vector, which is a copy if they were in memory.
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
