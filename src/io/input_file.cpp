// SPDX-License-Identifier: MIT
// Sources read in parts or as a whole, and read_file().
#include "io/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/os/files.h"
#include "io/text.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace io {

InputFile::InputFile(FileSource source)
    : source_(std::move(source)), size_(source_.bytes().size()) {
  if (source_.in_memory()) return;
  const std::string& path = source_.name();
  fd_ = os::open_file(path, os::Open::kRead);
  if (fd_ < 0) throw IoError(path + ": cannot be opened: " + system_error_text(errno));
  const std::optional<os::FileInfo> info = os::file_info(fd_);
  if (!info || info->kind != os::FileKind::kFile) {
    os::close_file(fd_);
    const bool folder = info && info->kind == os::FileKind::kFolder;
    throw IoError(path + (folder ? ": is a folder; expected a file" : ": is not a regular file"));
  }
  size_ = info->bytes;
}

InputFile::~InputFile() {
  if (fd_ >= 0) os::close_file(fd_);
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (source_.in_memory()) {
    const std::span<const std::byte> bytes = source_.bytes();
    const std::uint64_t left = offset < bytes.size() ? bytes.size() - offset : 0;
    if (left < out.size()) fail_truncated(bytes.size(), out.size() - left);
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
    return;
  }
  while (!out.empty()) {
    const std::ptrdiff_t n = os::read_at(fd_, offset, out);
    if (n < 0) throw IoError(name() + ": cannot be read: " + system_error_text(errno));
    if (n == 0) fail_truncated(offset, out.size());
    offset += static_cast<std::uint64_t>(n);
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

void InputFile::fail_truncated(std::uint64_t offset, std::uint64_t missing) const {
  throw IoError(name() + ": truncated at byte " + std::to_string(offset) + ": expected " +
                std::to_string(missing) + " more bytes");
}

Content::Content(const FileSource& source, std::uint64_t max_bytes) {
  const InputFile file(source);
  const std::uint64_t most = std::min<std::uint64_t>(max_bytes, read_.max_size());
  if (file.size() > most) {
    throw IoError(source.name() + ": has " + std::to_string(file.size()) + " bytes; at most " +
                  std::to_string(most) + " allowed");
  }
  if (!source.in_memory()) {
    read_.resize(static_cast<std::size_t>(file.size()));
    file.read_at(0, read_);
  }
  bytes_ = source.in_memory() ? source.bytes() : read_;
}

std::vector<std::byte> Content::take() && {
  if (bytes_.data() == read_.data()) return std::move(read_);
  return {bytes_.begin(), bytes_.end()};
}

}  // namespace io

std::vector<std::byte> read_file(const FileSource& source, std::uint64_t max_bytes) {
  return io::Content(source, max_bytes).take();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
