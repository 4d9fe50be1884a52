// SPDX-License-Identifier: MIT
// ZIP archives (APPNOTE 6.3). The central directory at the end lists the members. Zip64 archives
// can be read, but are not written.
#include <algorithm>
#include <limits>
#include <set>

#include "io/const_zlib.h"
#include "io/little_endian.h"
#include "io/npy.h"
#include "io/output_file.h"
#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

constexpr std::uint32_t kLocalMark = 0x04034b50, kEntryMark = 0x02014b50, kEndMark = 0x06054b50,
                        kWideEndMark = 0x06064b50, kLocatorMark = 0x07064b50;
constexpr std::size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kLocatorBytes = 20,
                      kWideEndBytes = 56;
constexpr std::uint32_t kSizeInExtraField = 0xffffffff;  // the size is in the extra field
constexpr std::uint64_t kMaxDeflateRatio = 1032;         // of deflate

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> bytes, const std::string& file)
      : bytes_(bytes), file_(file) {}

  std::vector<ZipMember> read() {
    std::uint64_t count = 0, at = 0;
    find_directory(count, at);
    std::vector<ZipMember> members;
    std::set<std::string> names;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t end = read_entry(at, members);
      at = end;
      if (!names.insert(members.back().name).second)
        fail("two members are called " + in_quotes(members.back().name));
    }
    return members;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw IoError(file_ + ": ZIP archive: " + what);
  }
  [[nodiscard]] std::span<const std::byte> part(std::uint64_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) fail("truncated or damaged");
    return bytes_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  }
  void need(std::uint64_t at, std::uint64_t size) const { static_cast<void>(part(at, size)); }
  [[nodiscard]] std::uint64_t number(std::uint64_t at, std::size_t bytes) const {
    const std::span<const std::byte> in = part(at, bytes);
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;)
      value = value << 8U | std::to_integer<std::uint64_t>(in[i]);
    return value;
  }
  [[nodiscard]] std::uint32_t word(std::uint64_t at) const {
    return static_cast<std::uint32_t>(number(at, 4));
  }

  void find_directory(std::uint64_t& count, std::uint64_t& at) const {
    if (bytes_.size() < kEndBytes) fail("truncated or damaged");
    constexpr std::size_t kLongestComment = 65'535;
    const std::size_t last = bytes_.size() - kEndBytes;
    const std::size_t first = last > kLongestComment ? last - kLongestComment : 0;
    for (std::size_t end = last + 1; end-- > first;) {
      if (word(end) != kEndMark) continue;
      count = number(end + 10, 2);
      at = word(end + 16);
      if (end >= kLocatorBytes && word(end - kLocatorBytes) == kLocatorMark) {
        const std::uint64_t wide = number(end - kLocatorBytes + 8, 8);
        need(wide, kWideEndBytes);
        if (word(wide) != kWideEndMark) fail("truncated or damaged");
        count = number(wide + 32, 8);
        at = number(wide + 48, 8);
      }
      // More entries than the file can hold.
      if (count > bytes_.size() / kEntryBytes) fail("truncated or damaged");
      return;
    }
    fail("no central directory");
  }

  // Returns the position of the next entry.
  std::uint64_t read_entry(std::uint64_t at, std::vector<ZipMember>& members) {
    need(at, kEntryBytes);
    if (word(at) != kEntryMark) fail("truncated or damaged");
    const std::uint64_t flags = number(at + 8, 2), method = number(at + 10, 2);
    const std::uint32_t checksum = word(at + 16);
    std::uint64_t packed = word(at + 20), size = word(at + 24), local = word(at + 42);
    const std::uint64_t name_size = number(at + 28, 2), extra_size = number(at + 30, 2);
    const std::span<const std::byte> name = part(at + kEntryBytes, name_size);
    ZipMember member{{reinterpret_cast<const char*>(name.data()), name.size()}, {}};
    widen(at + kEntryBytes + name_size, extra_size, {&size, &packed, &local});
    if ((flags & 1U) != 0) fail(in_quotes(member.name) + " is encrypted");
    need(local, kLocalBytes);
    if (word(local) != kLocalMark) fail("truncated or damaged");
    const std::uint64_t data = local + kLocalBytes + number(local + 26, 2) + number(local + 28, 2);
    const std::span<const std::byte> stored = part(data, packed);
    if (method == 0) {
      if (packed != size) fail(in_quotes(member.name) + " has two sizes");
      member.bytes.assign(stored.begin(), stored.end());
    } else if (method == 8) {
      member.bytes = inflated(stored, size, member.name);
    } else {
      fail(in_quotes(member.name) + " is compressed by method " + std::to_string(method) +
           "; expected none or deflate");
    }
    const uLong crc =
        crc32_z(0, reinterpret_cast<const Bytef*>(member.bytes.data()), member.bytes.size());
    if (crc != checksum) fail(in_quotes(member.name) + " has a wrong checksum");
    members.push_back(std::move(member));
    return at + kEntryBytes + name_size + extra_size + number(at + 32, 2);
  }

  // Reads the sizes that are kSizeInExtraField from the extra field, which has them in this order.
  void widen(std::uint64_t at, std::uint64_t bytes,
             std::initializer_list<std::uint64_t*> sizes) const {
    const std::uint64_t end = at + bytes;
    need(at, bytes);
    while (end - at >= 4) {
      const std::uint64_t kind = number(at, 2), size = number(at + 2, 2);
      at += 4;
      if (size > end - at) fail("truncated or damaged");
      std::uint64_t next = at;
      for (std::uint64_t* const each : sizes) {
        if (kind != 1 || *each != kSizeInExtraField || at + size - next < 8) continue;
        *each = number(next, 8);
        next += 8;
      }
      at += size;
    }
  }

  [[nodiscard]] std::vector<std::byte> inflated(std::span<const std::byte> from, std::uint64_t size,
                                                const std::string& name) const {
    const auto damaged = [&] { fail(in_quotes(name) + " is damaged"); };
    if (size / kMaxDeflateRatio > from.size() + 1) damaged();
    std::vector<std::byte> out(static_cast<std::size_t>(size));
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail("zlib failed to initialize");
    constexpr std::size_t kZipPiece = std::size_t{1} << 30;
    std::size_t read = 0, written = 0;
    int code = Z_OK;
    std::byte spare{};  // output buffer once `size` bytes are written
    while (code == Z_OK) {
      const std::size_t in = std::min(from.size() - read, kZipPiece);
      const std::size_t room = std::min(out.size() - written, kZipPiece);
      stream.next_in = reinterpret_cast<const Bytef*>(from.data() + read);
      stream.avail_in = static_cast<uInt>(in);
      stream.next_out = reinterpret_cast<Bytef*>(room > 0 ? out.data() + written : &spare);
      stream.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
      code = inflate(&stream, Z_NO_FLUSH);
      read += in - stream.avail_in;
      const std::size_t made = (room > 0 ? room : 1) - stream.avail_out;
      if (room == 0 && made > 0) code = Z_DATA_ERROR;
      if (room > 0) written += made;
      if (code == Z_OK && made == 0 && in == stream.avail_in) code = Z_DATA_ERROR;
    }
    inflateEnd(&stream);
    if (code != Z_STREAM_END || written != out.size()) damaged();
    return out;
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
};

// Returns the fields that a member's local header and its directory entry have in common.
std::string common_fields(const ZipMember& member) {
  constexpr std::uint64_t kNoDate = 0x21;  // 1980-01-01, as NumPy writes it
  std::string fields;
  append_number(fields, 20, 2);     // version needed
  append_number(fields, 0x800, 2);  // names are UTF-8
  append_number(fields, 0, 2);      // no compression
  append_number(fields, 0, 2);
  append_number(fields, kNoDate, 2);
  append_number(
      fields, crc32_z(0, reinterpret_cast<const Bytef*>(member.bytes.data()), member.bytes.size()),
      4);
  append_number(fields, member.bytes.size(), 4);
  append_number(fields, member.bytes.size(), 4);
  append_number(fields, member.name.size(), 2);
  append_number(fields, 0, 2);  // no extra field
  return fields;
}

void check_members(const std::vector<ZipMember>& members, const std::string& file) {
  constexpr std::size_t kMaxZipMembers = 65'535, kLongestName = 65'535;
  const auto fail = [&](const std::string& what) { throw IoError(file + ": " + what); };
  if (members.size() > kMaxZipMembers) fail("a ZIP archive holds at most 65535 arrays");
  std::uint64_t total = kEndBytes;
  for (const ZipMember& member : members) {
    for (std::string_view rest = member.name; !rest.empty();) {
      const std::size_t length = utf8_length(rest);
      if (length == 0) fail("the name " + in_quotes(member.name) + " is not UTF-8");
      rest.remove_prefix(length);
    }
    if (member.name.size() > kLongestName) fail("a name has more than 65535 bytes");
    total += kLocalBytes + kEntryBytes + 2 * member.name.size() + member.bytes.size();
  }
  if (total > std::numeric_limits<std::uint32_t>::max())
    fail("the archive would have " + std::to_string(total) + " bytes; expected at most 4294967295");
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

std::vector<ZipMember> read_zip(std::span<const std::byte> bytes, const std::string& file) {
  return ZipReader(bytes, file).read();
}

void write_zip(const FileSink& sink, const std::vector<ZipMember>& members) {
  check_members(members, sink.name());
  std::uint64_t total = kEndBytes;
  for (const ZipMember& member : members)
    total += kLocalBytes + kEntryBytes + 2 * member.name.size() + member.bytes.size();
  OutputFile out(sink, total);
  std::string directory;
  std::uint64_t at = 0;
  for (const ZipMember& member : members) {
    const std::string fields = common_fields(member);
    std::string head;
    append_number(head, kLocalMark, 4);
    head += fields + member.name;
    out.write(bytes_of(head));
    out.write(member.bytes);
    append_number(directory, kEntryMark, 4);
    append_number(directory, 20, 2);  // version made by
    directory += fields;
    append_number(directory, 0, 10);  // comment, disk, attributes
    append_number(directory, at, 4);
    directory += member.name;
    at += head.size() + member.bytes.size();
  }
  std::string end;
  append_number(end, kEndMark, 4);
  append_number(end, 0, 4);
  append_number(end, members.size(), 2);
  append_number(end, members.size(), 2);
  append_number(end, directory.size(), 4);
  append_number(end, at, 4);
  append_number(end, 0, 2);
  out.write(bytes_of(directory + end));
  out.commit();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
