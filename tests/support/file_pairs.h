// SPDX-License-Identifier: MIT
// Tests readers and writers of files with both paths and bytes in memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "support/temp_dir.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

namespace tensorgrad::test {

// Returns the string that `read(source)` returns, or the message of its error.
template <class Read>
std::string outcome_of(const Read& read, const FileSource& source) {
  try {
    return read(source);
  } catch (const UserError& error) {
    return "error: " + error.message();
  }
}

// Reads `bytes`, complete and truncated, from a file, from memory that outlives the source, and
// from memory that the source owns. Expects the same result or error from all.
template <class Read>
void expect_reads_bytes_as_files(std::span<const std::byte> bytes, const Read& read) {
  const TempDir folder;
  const std::string path = folder / "file";
  std::vector<std::size_t> sizes = {bytes.size()};
  for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 100) {
    sizes.push_back(size);
  }
  int refused = 0;
  for (const std::size_t size : sizes) {
    const std::span<const std::byte> part = bytes.first(size);
    write_file_atomically(path, part);
    const std::string expected = outcome_of(read, path);
    EXPECT_EQ(outcome_of(read, {part, path}), expected) << size << " bytes";
    std::vector<std::byte> owned(part.begin(), part.end());
    EXPECT_EQ(outcome_of(read, {std::move(owned), path}), expected) << size << " bytes";
    if (size == bytes.size()) {
      EXPECT_FALSE(expected.starts_with("error: ")) << expected;
    }
    if (expected.starts_with("error: " + path)) ++refused;
  }
  EXPECT_GT(refused, 0) << "no file that is cut short is refused";
}

// Returns what `write(sink)` writes to memory. Expects the same bytes in a file.
template <class Write>
std::vector<std::byte> bytes_written_by(const Write& write) {
  const TempDir folder;
  write(FileSink(folder / "file"));
  std::vector<std::byte> bytes(3, std::byte{7});
  write(FileSink(bytes));
  EXPECT_EQ(bytes, read_file(folder / "file"));
  return bytes;
}

// Returns the bytes of a range of trivially copyable values, for comparison.
template <class Range>
std::string bits_of_range(const Range& range) {
  const auto bytes = std::as_bytes(std::span(range));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace tensorgrad::test
