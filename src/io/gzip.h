// SPDX-License-Identifier: MIT
// Reads bytes that may be gzipped (detected by the first two) piece by piece, so that the caller
// limits the output. Verifies checksums and joins consecutive members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/const_zlib.h"
#include "io/input_file.h"
#include "tensorgrad/data/files.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

bool is_gzip(std::span<const std::byte> bytes);

// Size to which any compressed file may expand, regardless of the ratio.
inline constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20;

// Returns the limit on the size to which `bytes` compressed bytes may expand.
std::uint64_t most_expanded(std::uint64_t bytes, double max_expansion);

// Reads all bytes of a source and inflates them if they are gzipped. Throws IoError as read_file(),
// and if the stream is damaged, or larger than `max_bytes` or most_expanded().
Content read_inflated(const FileSource& source, std::uint64_t max_bytes,
                      double max_expansion = kMaxExpansion);

class InflatingReader {
 public:
  // `bytes` and `file` (for messages) must outlive the reader.
  InflatingReader(std::span<const std::byte> bytes, std::string_view file,
                  double max_expansion = kMaxExpansion);
  ~InflatingReader();
  InflatingReader(const InflatingReader&) = delete;
  InflatingReader& operator=(const InflatingReader&) = delete;

  // Fills `out` and returns the number of bytes, which is smaller only at the end. Throws IoError
  // if the stream is damaged or truncated.
  std::size_t read(std::span<std::byte> out);
  // Appends up to `count` bytes to `out`. Its memory grows with the bytes that are actually read.
  std::size_t append(std::vector<std::byte>& out, std::uint64_t count);

  // Returns an upper bound on the total output.
  [[nodiscard]] std::uint64_t most_bytes() const;
  [[nodiscard]] bool inflates() const { return gzip_; }

 private:
  std::size_t inflate_into(std::span<std::byte> out);
  void next_member();
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_expansion() const;
  [[nodiscard]] std::size_t consumed() const;

  std::span<const std::byte> bytes_;
  std::string_view file_;
  bool gzip_;
  double max_expansion_;
  std::uint64_t inflated_ = 0;
  bool ended_ = false;
  std::size_t next_ = 0;  // plain: bytes returned; gzip: bytes passed to zlib
  z_stream stream_{};
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
