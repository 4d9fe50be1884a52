// SPDX-License-Identifier: MIT
// The format of numpy.lib.format: a magic string, a version, the size of the header, and the
// header, which is a Python dictionary with three keys.
#include "io/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "io/text.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMaxAxes = 64;

struct NpyType {
  const char* npy;  // without byte order
  const char* stored;
  std::size_t bytes;
};
constexpr NpyType kTypes[] = {{"f2", "F16", 2}, {"f4", "F32", 4}, {"f8", "F64", 8},
                              {"i1", "I8", 1},  {"i2", "I16", 2}, {"i4", "I32", 4},
                              {"i8", "I64", 8}, {"u1", "U8", 1},  {"u2", "U16", 2},
                              {"u4", "U32", 4}, {"u8", "U64", 8}, {"b1", "BOOL", 1}};

struct NpyHeader {
  const NpyType* type = nullptr;
  bool big_endian = false, fortran = false;
  Shape shape;
};

// Parses the Python literal of a header.
class NpyHeaderReader {
 public:
  NpyHeaderReader(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  NpyHeader read() {
    NpyHeader header;
    bool descr = false, fortran = false, shape = false;
    expect("{");
    while (!take("}")) {
      const std::string key = quoted();
      expect(":");
      if (key == "descr" && !descr) {
        read_type(header);
        descr = true;
      } else if (key == "fortran_order" && !fortran) {
        header.fortran = take("True");
        if (!header.fortran) expect("False");
        fortran = true;
      } else if (key == "shape" && !shape) {
        read_shape(header.shape);
        shape = true;
      } else {
        fail("unexpected key " + in_quotes(key));
      }
      if (!take(",")) {
        expect("}");
        break;
      }
    }
    if (!descr || !fortran || !shape) fail("expected descr, fortran_order and shape");
    if (rest_.find_first_not_of(" \n") != std::string_view::npos) fail("text after the dictionary");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw IoError(file_ + ": header of an array: " + what);
  }
  bool take(std::string_view word) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail("expected " + std::string(word) + ", got " + in_quotes(rest_, 20));
  }
  std::string quoted() {
    const char* const quote = take("'") ? "'" : "\"";
    if (*quote == '"') expect("\"");
    const std::size_t end = rest_.find(*quote);
    if (end == std::string_view::npos) fail("unterminated string");
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  void read_type(NpyHeader& header) {
    if (take("[")) fail("arrays of records are not supported");
    const std::string descr = quoted();
    const std::string_view kind =
        std::string_view(descr).substr(std::min<std::size_t>(1, descr.size()));
    for (const NpyType& type : kTypes) {
      if (kind == type.npy) header.type = &type;
    }
    header.big_endian = descr.starts_with('>');
    const bool ordered =
        !descr.empty() && (std::string_view("<>|=").find(descr[0]) != std::string_view::npos);
    if (header.type == nullptr || !ordered)
      fail("elements of type " + in_quotes(descr) +
           " are not supported; expected floats, integers or bool");
  }
  void read_shape(Shape& shape) {
    expect("(");
    while (!take(")")) {
      rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
      std::int64_t size = 0;
      const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0 || shape.size() == kMaxAxes)
        fail("expected up to 64 sizes, got " + in_quotes(rest_, 20));
      rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
      take("L");  // as written by Python 2
      shape.push_back(size);
      if (!take(",")) {
        expect(")");
        break;
      }
    }
  }

  std::string_view rest_;
  const std::string& file_;
};

void reverse_bytes(std::vector<std::byte>& bytes, std::size_t each) {
  for (std::size_t at = 0; at + each <= bytes.size(); at += each) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + each));
  }
}

// Converts from column-major (Fortran) to row-major order.
std::vector<std::byte> row_major(const std::vector<std::byte>& bytes, const Shape& shape,
                                 std::size_t each) {
  std::vector<std::byte> made(bytes.size());
  std::vector<std::int64_t> at(shape.size(), 0);
  for (std::size_t to = 0; to < made.size(); to += each) {
    std::size_t from = 0;
    for (std::size_t d = shape.size(); d-- > 0;)
      from = from * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(at[d]);
    std::memcpy(&made[to], &bytes[from * each], each);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return made;
}

}  // namespace

StoredTensor parse_npy(std::span<const std::byte> bytes, const std::string& file) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto fail = [&](const std::string& what) { throw IoError(file + ": " + what); };
  constexpr std::size_t kVersionByte = kMagic.size(), kSize = kVersionByte + 2;
  if (!text.starts_with(kMagic) || text.size() < kSize + 2) fail("not a .npy file");
  const int version = static_cast<unsigned char>(text[kVersionByte]);
  if (version < 1 || version > 3)
    fail("version " + std::to_string(version) + " of .npy is unknown");
  const std::size_t width = version == 1 ? 2 : 4;
  std::size_t size = 0;
  if (text.size() < kSize + width) fail("truncated header of an array");
  for (std::size_t i = width; i-- > 0;)
    size = size << 8U | static_cast<unsigned char>(text[kSize + i]);
  const std::size_t begin = kSize + width;
  if (size > text.size() - begin) fail("truncated header of an array");
  const NpyHeader header = NpyHeaderReader(text.substr(begin, size), file).read();
  const std::optional<std::uint64_t> wanted = checked_bytes(header.shape, header.type->bytes);
  const std::size_t there = text.size() - begin - size;
  if (!wanted || *wanted != there) {
    fail("the array " + to_string(header.shape) + " of " + header.type->stored + " has " +
         std::to_string(there) + " bytes" +
         (wanted ? "; expected " + std::to_string(*wanted) : std::string()));
  }
  StoredTensor tensor{header.type->stored, header.shape, {}};
  tensor.data.assign(bytes.end() - static_cast<std::ptrdiff_t>(there), bytes.end());
  if (header.big_endian) reverse_bytes(tensor.data, header.type->bytes);
  if (header.fortran && header.shape.size() > 1)
    tensor.data = row_major(tensor.data, header.shape, header.type->bytes);
  return tensor;
}

std::string npy_head(const std::string& dtype, const Shape& shape) {
  const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                        [&](const NpyType& each) { return dtype == each.stored; });
  std::string sizes;
  for (const std::int64_t size : shape) sizes += std::to_string(size) + ", ";
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);
  if (shape.size() == 1) sizes.resize(sizes.size() - 1);
  std::string header = std::string("{'descr': '") + (type->bytes == 1 ? "|" : "<") + type->npy +
                       "', 'fortran_order': False, 'shape': (" + sizes + "), }";
  const std::size_t before = kMagic.size() + 4;
  const std::size_t whole = (before + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.append(whole - before - header.size() - 1, ' ');
  header += '\n';
  std::string head(kMagic);
  head += {'\x01', '\0', static_cast<char>(header.size() & 0xffU),
           static_cast<char>(header.size() >> 8U)};
  return head + header;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
