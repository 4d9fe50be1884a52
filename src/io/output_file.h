// SPDX-License-Identifier: MIT
// Output of writers: a file or a vector of bytes. Either is replaced as a whole or not at all.
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
  // `size` is the number of bytes that will be written. Throws IoError as AtomicFile.
  OutputFile(const FileSink& sink, std::uint64_t size);

  void write(std::span<const std::byte> bytes);
  // As AtomicFile::commit(). No more writes are allowed.
  void commit();

 private:
  std::vector<std::byte>* target_;
  std::vector<std::byte> bytes_;
  std::optional<AtomicFile> file_;  // set if there is no target
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
