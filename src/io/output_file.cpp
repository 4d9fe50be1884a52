// SPDX-License-Identifier: MIT
#include "io/output_file.h"

#include <utility>

namespace tensorgrad::inline TENSORGRAD_ABI::io {

OutputFile::OutputFile(const FileSink& sink, std::uint64_t size) : target_(sink.bytes()) {
  if (target_ == nullptr) {
    file_.emplace(sink.name());
  } else {
    bytes_.reserve(static_cast<std::size_t>(size));
  }
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (file_) return file_->write(bytes);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void OutputFile::commit() {
  if (file_) return file_->commit();
  *target_ = std::move(bytes_);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
