// SPDX-License-Identifier: MIT
// Files: safetensors in and out, atomic writing, and the line log behind metrics.jsonl.
// Readers take hostile input: they throw IoError with the file and the byte, and allocate nothing
// that the file's real size does not justify. docs/formats.md describes the layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad {

// One tensor as it lies in a file: little-endian, row-major, no padding. A size may be 0 here.
struct StoredTensor {
  std::string dtype;  // safetensors name: "F32", "I32", "U32", "BOOL", "F16", "BF16", "I64", ...
  Shape shape;
  std::vector<std::byte> data;

  bool operator==(const StoredTensor&) const = default;
};

// A whole safetensors file in memory. For every tensor data.size() == numel(shape) * dtype size.
struct StoredFile {
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> metadata;

  bool operator==(const StoredFile&) const = default;
};

// Bytes of one element of a safetensors dtype; 0 if the dtype is not known.
std::size_t stored_dtype_bytes(std::string_view dtype);

// The safetensors name of an element type: "F32", "I32", "U32", "BOOL".
std::string_view stored_dtype(DType dtype);

// The type of the tensor `name` of `file` in memory. IoError where it is none of F32, I32 and U32,
// which alone lie in memory as in a file.
DType element_type(const std::string& file, const std::string& name, const StoredTensor& tensor);

// The values of a tensor of F32, I32, U32 or BOOL; NaN and infinity are not among the `finite`.
struct StoredRange {
  double least = 0, most = 0, mean = 0;  // of the finite ones, 0 where there is none
  std::size_t count = 0, finite = 0;
};
// All 0 for other dtypes.
StoredRange stored_range(const StoredTensor& tensor);

// Writes `file` to `path` atomically. IoError: an unknown dtype, data that does not fit the shape,
// a name that is not UTF-8 or is "__metadata__", or a path that cannot be written.
void write_safetensors(const std::string& path, const StoredFile& file);

// Reads a whole file. IoError: missing, unreadable, or malformed in any way.
StoredFile read_safetensors(const std::string& path);

// The same for bytes in memory; `name` stands for the file in messages.
StoredFile parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

// A text table, one tensor a line (name, dtype, shape, bytes; its stored_range()), then the
// metadata. Unprintable bytes in names are escaped.
std::string dump_safetensors(const StoredFile& file);

// The whole of a regular file. IoError: missing, not a regular file, or longer than `max_bytes`.
std::vector<std::byte> read_file(const std::string& path, std::uint64_t max_bytes = UINT64_MAX);

// The same, inflated if it is gzipped, which its first bytes tell; then no longer than `max_bytes`.
std::string read_text_file(const std::string& path, std::uint64_t max_bytes = UINT64_MAX);

// Writes beside (path.tmp.PID.N), syncs and renames: a reader sees the old file or the whole new
// one. An existing path must be a regular file; a symbolic link is followed.
void write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::string& path, std::string_view text);

// An append-only text file, one record a line, as metrics.jsonl. Each line reaches the system in
// one write, so that a crash loses at most the line being written.
class LineLog {
 public:
  enum class Open {
    kCreate,  // an empty file replaces what is there
    kAppend,  // goes on; a last line that a crash cut short is dropped. Created if missing
  };

  LineLog(const std::string& path, Open how);
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;
  LineLog(LineLog&& other) noexcept;
  LineLog& operator=(LineLog&& other) noexcept;

  // Appends `line` and a newline; the line itself must hold none.
  void write(std::string_view line);

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace tensorgrad
