// SPDX-License-Identifier: MIT
// What a writer writes to: a file that appears whole or not at all, or a vector of bytes that is
// replaced whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "io/atomic_file.h"
#include "tensorgrad/data/file_source.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

class OutputFile {
 public:
  // `size` is that of what will be written. IoError: as AtomicFile.
  OutputFile(const FileSink& sink, std::uint64_t size);

  void write(std::span<const std::byte> bytes);
  // As AtomicFile::commit(). Nothing may be written afterwards.
  void commit();

 private:
  std::vector<std::byte>* target_;
  std::vector<std::byte> bytes_;
  std::optional<AtomicFile> file_;  // if there is no target
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
