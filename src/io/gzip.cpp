// SPDX-License-Identifier: MIT
// Reads bytes that may be gzipped, piece by piece.
#include "io/gzip.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

constexpr std::size_t kGzipPiece = std::size_t{4} << 20;
constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, gzip format with checksum

void check_text_size(std::uint64_t bytes, std::uint64_t most, const std::string& name) {
  if (bytes <= most) return;
  throw IoError(name + ": text exceeds the limit of " + std::to_string(most) + " bytes");
}

}  // namespace

std::uint64_t most_expanded(std::uint64_t bytes, double max_expansion) {
  const double most = max_expansion * static_cast<double>(bytes);
  if (!(most < 0x1p63)) return UINT64_MAX;
  return std::max(kFreeBytes, static_cast<std::uint64_t>(std::max(most, 0.0)));
}

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

Content read_inflated(const FileSource& source, std::uint64_t max_bytes, double max_expansion) {
  Content content(source);
  if (is_gzip(content.bytes())) {
    std::vector<std::byte> inflated;
    InflatingReader reader(content.bytes(), source.name(), max_expansion);
    // One byte more than allowed shows that the limit is exceeded.
    reader.append(inflated, std::min(max_bytes, UINT64_MAX - 1) + 1);
    content = Content(std::move(inflated));
  }
  check_text_size(content.bytes().size(), max_bytes, source.name());
  return content;
}

InflatingReader::InflatingReader(std::span<const std::byte> bytes, std::string_view file,
                                 double max_expansion)
    : bytes_(bytes), file_(file), gzip_(is_gzip(bytes)), max_expansion_(max_expansion) {
  if (gzip_ && inflateInit2(&stream_, kGzipWindow) != Z_OK) fail("zlib failed to initialize");
}

InflatingReader::~InflatingReader() {
  if (gzip_) inflateEnd(&stream_);
}

std::uint64_t InflatingReader::most_bytes() const {
  return gzip_ ? most_expanded(bytes_.size(), max_expansion_) : bytes_.size();
}

std::size_t InflatingReader::consumed() const { return next_ - stream_.avail_in; }

void InflatingReader::fail(const std::string& what) const {
  throw IoError(std::string(file_) + ": " + what + " at byte " + std::to_string(consumed()));
}

std::size_t InflatingReader::read(std::span<std::byte> out) {
  if (gzip_) return inflate_into(out);
  const std::size_t n = std::min(out.size(), bytes_.size() - next_);
  if (n > 0) std::memcpy(out.data(), bytes_.data() + next_, n);
  next_ += n;
  return n;
}

std::size_t InflatingReader::append(std::vector<std::byte>& out, std::uint64_t count) {
  std::size_t total = 0;
  while (total < count) {
    const std::size_t start = out.size();
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(count - total, kGzipPiece));
    out.resize(start + piece);
    const std::size_t n = read(std::span(out).subspan(start));
    out.resize(start + n);
    total += n;
    if (n < piece) break;
  }
  return total;
}

std::size_t InflatingReader::inflate_into(std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size() && !ended_) {
    if (stream_.avail_in == 0) {
      const std::size_t n = std::min(bytes_.size() - next_, kGzipPiece);
      stream_.next_in = reinterpret_cast<const Bytef*>(bytes_.data() + next_);
      stream_.avail_in = static_cast<uInt>(n);
      next_ += n;
    }
    const std::size_t want = std::min(out.size() - done, kGzipPiece);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream_.avail_out = static_cast<uInt>(want);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    done += want - stream_.avail_out;
    inflated_ += want - stream_.avail_out;
    if (inflated_ > most_bytes()) fail_expansion();
    if (code == Z_STREAM_END) {
      next_member();
    } else if (code == Z_MEM_ERROR) {
      fail("out of memory while decompressing");
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      fail(std::string("damaged gzip stream (") + (stream_.msg ? stream_.msg : "unknown") + ")");
    } else if (stream_.avail_in == 0 && next_ == bytes_.size() && stream_.avail_out > 0) {
      fail("truncated gzip stream");
    }
  }
  return done;
}

void InflatingReader::fail_expansion() const {
  throw IoError(std::string(file_) + ": expands to more than " + std::to_string(most_bytes()) +
                " bytes, from " + std::to_string(bytes_.size()) +
                "; decompress it first if this is intended (limit: max_expansion)");
}

void InflatingReader::next_member() {
  const std::size_t at = consumed();
  if (at == bytes_.size()) {
    ended_ = true;
    return;
  }
  if (!is_gzip(bytes_.subspan(at))) fail("extra bytes after the end of the gzip stream");
  if (inflateReset(&stream_) != Z_OK) fail("zlib failed to reset");
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io

namespace tensorgrad::inline TENSORGRAD_ABI {

std::string read_text_file(const FileSource& source, std::uint64_t max_bytes,
                           double max_expansion) {
  const io::InputFile file(source);
  std::array<std::byte, 2> first = {};
  file.read_at(0, std::span(first).first(std::min<std::uint64_t>(file.size(), first.size())));
  if (!io::is_gzip(first)) {
    io::check_text_size(file.size(), max_bytes, source.name());
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(text)));
    return text;
  }
  const io::Content content(source);
  io::InflatingReader reader(content.bytes(), source.name(), max_expansion);
  std::vector<std::byte> piece(io::kGzipPiece);
  std::string text;
  for (std::size_t count = piece.size(); count == piece.size();) {
    count = reader.read(piece);
    text.append(reinterpret_cast<const char*>(piece.data()), count);
    io::check_text_size(text.size(), max_bytes, source.name());
  }
  return text;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
