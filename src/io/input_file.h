// SPDX-License-Identifier: MIT
// A regular file open for reading, whose size is known before anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tensorgrad/version.h"

namespace tensorgrad::io {

class InputFile {
 public:
  // IoError: missing, unreadable, a folder, a device or a pipe.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // As it was when the file was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Fills `out` from byte `offset`. IoError if the file has become shorter.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace tensorgrad::io
