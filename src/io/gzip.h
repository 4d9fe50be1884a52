// SPDX-License-Identifier: MIT
// Reads bytes that may be gzipped (told by their first two), a piece at a time, so that the caller
// bounds what is inflated. Checksums are verified; members that follow each other are joined.
#pragma once

#define ZLIB_CONST  // zlib reads its input without writing to it
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_file.h"
#include "tensorgrad/data/files.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

bool is_gzip(std::span<const std::byte> bytes);

// Compressed files expand to this size whatever the ratio is.
inline constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20;

// Returns the limit on what `bytes` compressed bytes expand to.
std::uint64_t most_expanded(std::uint64_t bytes, double max_expansion);

// All bytes of a source, inflated if they are gzipped. IoError: as read_file(), a damaged stream,
// more than `max_bytes` bytes, more than most_expanded().
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

  // Fills `out`; returns the number of bytes, which is less than asked for only at the end.
  // IoError if the stream is damaged or cut off.
  std::size_t read(std::span<std::byte> out);
  // Appends up to `count` bytes to `out`, whose memory grows with what is really there.
  std::size_t append(std::vector<std::byte>& out, std::uint64_t count);

  // No more than this can come out in all.
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
  std::size_t next_ = 0;  // plain: bytes given out; gzip: bytes handed to zlib
  z_stream stream_{};
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
