// SPDX-License-Identifier: MIT
// A regular file open for reading, and read_file on top of it.
#include "io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "io/text.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace io {

InputFile::InputFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer; files do not mind.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) throw IoError(path + ": cannot be opened: " + system_error_text(errno));
  struct stat info = {};
  const bool known = ::fstat(fd_, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    ::close(fd_);
    const bool folder = known && S_ISDIR(info.st_mode);
    throw IoError(path + (folder ? ": is a folder; expected a file" : ": is not a regular file"));
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;  // Linux moves at most 2 GiB a call
  while (!out.empty()) {
    const ssize_t n =
        ::pread(fd_, out.data(), std::min(out.size(), kMaxTransfer), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError(path_ + ": cannot be read: " + system_error_text(errno));
    if (n == 0) {
      throw IoError(path_ + ": truncated at byte " + std::to_string(offset) + ": expected " +
                    std::to_string(out.size()) + " more bytes");
    }
    offset += static_cast<std::uint64_t>(n);
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace io

std::vector<std::byte> read_file(const std::string& path, std::uint64_t max_bytes) {
  const io::InputFile file(path);
  std::vector<std::byte> bytes;
  const std::uint64_t most = std::min<std::uint64_t>(max_bytes, bytes.max_size());
  if (file.size() > most) {
    throw IoError(path + ": has " + std::to_string(file.size()) + " bytes; at most " +
                  std::to_string(most) + " allowed");
  }
  bytes.resize(static_cast<std::size_t>(file.size()));
  file.read_at(0, bytes);
  return bytes;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
