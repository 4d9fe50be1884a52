// SPDX-License-Identifier: MIT
// Reads and writes GGUF: a header of metadata and the places of tensors, then their data, each
// tensor at a multiple of the alignment. ggml's docs/gguf.md describes the format.
#include "io/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "io/input_file.h"
#include "io/output_file.h"
#include "io/text.h"
#include "tensorgrad/data/gguf.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace io {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

constexpr std::array<GgufType, 16> kGgufTypes = {{
    {0, "F32", 1, 4},
    {1, "F16", 1, 2},
    {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},
    {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},
    {12, "Q4_K", 256, 144},
    {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},
    {24, "I8", 1, 1},
    {25, "I16", 1, 2},
    {26, "I32", 1, 4},
    {27, "I64", 1, 8},
    {28, "F64", 1, 8},
    {30, "BF16", 1, 2},
}};

constexpr std::array<char, 4> kGgufMagic = {'G', 'G', 'U', 'F'};
constexpr std::uint32_t kGgufVersion = 3;
constexpr std::uint32_t kOldestVersion = 2;
constexpr std::uint32_t kUsualAlignment = 32;
constexpr std::uint32_t kGgufAxes = 4;
constexpr std::size_t kLongestGgufName = 63;
constexpr const char* kAlignmentKey = "general.alignment";
constexpr std::size_t kArrayType = 9;  // of GgufValue
constexpr std::size_t kValueTypes = std::variant_size_v<GgufValue>;
static_assert(std::is_same_v<std::variant_alternative_t<kArrayType, GgufValue>, GgufArray>);
static_assert(std::variant_size_v<GgufArray> == kValueTypes);

std::uint64_t padded(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// The alternative of `Variant` with the number `type`, to be filled.
template <class Variant, std::size_t I = 0>
Variant alternative(std::size_t type) {
  if constexpr (I + 1 < std::variant_size_v<Variant>) {
    if (type != I) return alternative<Variant, I + 1>(type);
  }
  return Variant(std::in_place_index<I>);
}

// The header, read in order through a window of the file.
class GgufReader {
 public:
  explicit GgufReader(const FileSource& source) : file_(source), window_(kWindow) {}

  GgufFile read();

 private:
  struct Entry {
    std::string name;
    const GgufType* type = nullptr;
    Shape shape;
    std::uint64_t offset = 0, bytes = 0;
  };
  static constexpr std::size_t kWindow = std::size_t{1} << 16;

  [[noreturn]] void fail(std::uint64_t byte, const std::string& what) const {
    throw IoError(file_.name() + ": " + what + " at byte " + std::to_string(byte));
  }
  [[nodiscard]] std::uint64_t left() const { return file_.size() - at_; }
  void need(std::uint64_t bytes, const char* what) const {
    if (bytes > left()) {
      fail(at_, "truncated: expected " + std::to_string(bytes) + " bytes of " + what + ", got " +
                    std::to_string(left()));
    }
  }
  void take(std::span<std::byte> out, const char* what);
  template <class T>
  T number(const char* what) {
    T value{};
    take(std::as_writable_bytes(std::span(&value, 1)), what);
    return value;
  }
  bool boolean(const char* what);
  // A number of things that take at least `least` bytes each.
  std::uint64_t count(std::uint64_t least, const char* what);
  std::string text(const char* what);
  template <class T>
  void value(T& out, const char* what);
  void array(GgufArray& out);
  void read_metadata(std::uint64_t keys);
  Entry entry();
  void read_tensors(std::uint64_t tensors);

  InputFile file_;
  std::vector<std::byte> window_;
  std::uint64_t window_begin_ = 0, window_end_ = 0;  // in the file
  std::uint64_t at_ = 0;
  std::uint64_t alignment_ = kUsualAlignment;
  GgufFile content_;
};

void GgufReader::take(std::span<std::byte> out, const char* what) {
  need(out.size(), what);
  if (out.size() > kWindow) {
    file_.read_at(at_, out);
  } else {
    if (at_ < window_begin_ || at_ + out.size() > window_end_) {
      const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(kWindow, left()));
      file_.read_at(at_, std::span(window_).first(bytes));
      window_begin_ = at_;
      window_end_ = at_ + bytes;
    }
    const auto from = window_.begin() + static_cast<std::ptrdiff_t>(at_ - window_begin_);
    std::copy_n(from, out.size(), out.begin());
  }
  at_ += out.size();
}

bool GgufReader::boolean(const char* what) {
  const std::uint64_t begin = at_;
  const auto value = number<std::uint8_t>(what);
  if (value > 1) fail(begin, "a boolean is " + std::to_string(value) + ", expected 0 or 1");
  return value == 1;
}

std::uint64_t GgufReader::count(std::uint64_t least, const char* what) {
  const std::uint64_t begin = at_;
  const auto value = number<std::uint64_t>(what);
  if (value > left() / least) {
    fail(begin, std::string(what) + " is " + std::to_string(value) + ", but only " +
                    std::to_string(left()) + " bytes follow");
  }
  return value;
}

std::string GgufReader::text(const char* what) {
  std::string out(count(1, what), '\0');
  take(std::as_writable_bytes(std::span(out)), what);
  return out;
}

template <class T>
void GgufReader::value(T& out, const char* what) {
  if constexpr (std::is_same_v<T, bool>) {
    out = boolean(what);
  } else if constexpr (std::is_same_v<T, std::string>) {
    out = text(what);
  } else if constexpr (std::is_same_v<T, GgufArray>) {
    array(out);
  } else {
    out = number<T>(what);
  }
}

void GgufReader::array(GgufArray& out) {
  const std::uint64_t begin = at_;
  const auto type = number<std::uint32_t>("an array's type");
  if (type >= kValueTypes || type == kArrayType) {
    fail(begin, type == kArrayType ? std::string("arrays of arrays are not supported")
                                   : "an array has the unknown type " + std::to_string(type));
  }
  out = alternative<GgufArray>(type);
  std::visit(
      [&]<class List>(List& list) {
        if constexpr (!std::is_same_v<List, std::monostate>) {
          using T = typename List::value_type;
          constexpr std::uint64_t kMinBytes = std::is_same_v<T, std::string> ? sizeof(std::uint64_t)
                                              : std::is_same_v<T, bool>      ? 1
                                                                             : sizeof(T);
          const std::uint64_t size = count(kMinBytes, "an array's length");
          if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
            list.resize(size);
            take(std::as_writable_bytes(std::span(list)), "an array");
          } else {
            for (std::uint64_t i = 0; i < size; ++i) {
              T each{};
              value(each, "an array's element");
              list.push_back(std::move(each));
            }
          }
        }
      },
      out);
}

void GgufReader::read_metadata(std::uint64_t keys) {
  for (std::uint64_t i = 0; i < keys; ++i) {
    const std::uint64_t begin = at_;
    std::string key = text("a key");
    const auto type = number<std::uint32_t>("a value's type");
    if (type >= kValueTypes)
      fail(begin, "key " + in_quotes(key) + " has the unknown type " + std::to_string(type));
    GgufValue read = alternative<GgufValue>(type);
    std::visit([&](auto& each) { value(each, "a value"); }, read);
    if (key == kAlignmentKey) {
      const auto* const given = std::get_if<std::uint32_t>(&read);
      if (given == nullptr || !std::has_single_bit(*given))
        fail(begin, std::string(kAlignmentKey) + ": expected a u32 that is a power of 2");
      alignment_ = *given;
    }
    const std::string name = in_quotes(key);
    if (!content_.metadata.emplace(std::move(key), std::move(read)).second)
      fail(begin, "duplicate key " + name);
  }
}

GgufReader::Entry GgufReader::entry() {
  const std::uint64_t begin = at_;
  Entry made{.name = text("a tensor's name"), .type = nullptr, .shape = {}};
  const auto bad = [&](const std::string& what) {
    fail(begin, "tensor " + in_quotes(made.name) + ": " + what);
  };
  const auto axes = number<std::uint32_t>("a tensor's number of axes");
  if (axes > kGgufAxes) bad(std::to_string(axes) + " axes, expected at most 4");
  for (std::uint32_t i = 0; i < axes; ++i) {
    const auto size = number<std::uint64_t>("a tensor's size");
    if (size > INT64_MAX) bad("the size " + std::to_string(size) + " is too large");
    made.shape.insert(made.shape.begin(), static_cast<std::int64_t>(size));
  }
  const auto number_of_type = number<std::uint32_t>("a tensor's type");
  made.type = gguf_type(number_of_type);
  if (made.type == nullptr) {
    bad("type " + std::to_string(number_of_type) +
        " of ggml is not supported; expected F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, "
        "Q5_K or Q6_K (llama-quantize --allow-requantize converts a file)");
  }
  made.offset = number<std::uint64_t>("a tensor's offset");
  const auto bytes = gguf_bytes(*made.type, made.shape);
  if (!bytes) {
    bad("the shape " + to_string(made.shape) + " does not fit blocks of " +
        std::to_string(made.type->elements) + " elements or is too large");
  }
  made.bytes = *bytes;
  return made;
}

void GgufReader::read_tensors(std::uint64_t tensors) {
  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < tensors; ++i) entries.push_back(entry());
  const std::uint64_t begin = padded(at_, alignment_);
  const std::uint64_t room = file_.size() > begin ? file_.size() - begin : 0;
  std::uint64_t next = 0, end = 0;
  for (const Entry& e : entries) {
    const std::string where = "tensor " + in_quotes(e.name) + ": ";
    if (e.offset != next) {
      fail(begin + next, where + "expected its data at offset " + std::to_string(next) + ", got " +
                             std::to_string(e.offset));
    }
    if (e.offset > room || e.bytes > room - e.offset) {
      fail(file_.size(), "truncated: " + where + "expected " + std::to_string(e.bytes) +
                             " bytes from offset " + std::to_string(e.offset) + " on");
    }
    end = e.offset + e.bytes;
    next = padded(end, alignment_);
  }
  if (room >= end + alignment_)
    fail(begin + end, std::to_string(room - end) + " bytes that belong to no tensor");
  for (Entry& e : entries) {
    std::vector<std::byte> data(e.bytes);
    file_.read_at(begin + e.offset, data);
    const std::string name = in_quotes(e.name);
    StoredTensor made{std::string(e.type->name), std::move(e.shape), std::move(data)};
    if (!content_.tensors.emplace(std::move(e.name), std::move(made)).second)
      fail(begin + e.offset, "duplicate tensor " + name);
  }
}

GgufFile GgufReader::read() {
  std::array<char, kGgufMagic.size()> magic{};
  if (file_.size() < magic.size())
    fail(file_.size(), "truncated: expected the 4 bytes \"GGUF\" at its beginning");
  take(std::as_writable_bytes(std::span(magic)), "magic");
  if (magic != kGgufMagic) {
    fail(0, "not a GGUF file: it begins with " + in_quotes({magic.data(), magic.size()}) +
                ", expected \"GGUF\"");
  }
  const auto version = number<std::uint32_t>("the version");
  if (version < kOldestVersion || version > kGgufVersion) {
    const bool big = version != 0 && (version & 0xFFFF) == 0;
    fail(4, big ? std::string("big-endian files are not supported")
                : "version " + std::to_string(version) + " is not supported; expected 2 or 3");
  }
  constexpr std::uint64_t kMinTensor = 24, kMinKey = 13;  // bytes of one without a name
  const std::uint64_t tensors = count(kMinTensor, "the number of tensors");
  const std::uint64_t keys = count(kMinKey, "the number of keys");
  read_metadata(keys);
  read_tensors(tensors);
  return std::move(content_);
}

// What a file holds, in memory.
class GgufHeader {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  void add(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void add(const std::string& text) {
    add(static_cast<std::uint64_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void add(const GgufArray& array) {
    add(static_cast<std::uint32_t>(array.index()));
    std::visit(
        [&]<class List>(const List& list) {
          if constexpr (!std::is_same_v<List, std::monostate>) {
            add(static_cast<std::uint64_t>(list.size()));
            for (std::size_t i = 0; i < list.size(); ++i)
              add(static_cast<const typename List::value_type&>(list[i]));
          }
        },
        array);
  }
  void add(const GgufValue& value) {
    add(static_cast<std::uint32_t>(value.index()));
    std::visit([&](const auto& each) { add(each); }, value);
  }
  std::vector<std::byte> padded_to(std::uint64_t alignment) && {
    bytes_.resize(padded(bytes_.size(), alignment));
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

// The type of a tensor that can be written.
const GgufType& writable(const std::string& path, const std::string& name,
                         const StoredTensor& tensor) {
  const auto bad = [&](const std::string& what) {
    throw IoError(path + ": tensor " + in_quotes(name) + ": " + what);
  };
  if (name.size() > kLongestGgufName) bad("the name has more than 63 bytes");
  if (tensor.shape.size() > kGgufAxes) bad("has more than 4 axes");
  const GgufType* const type = gguf_type(tensor.dtype);
  if (type == nullptr) bad("unknown type " + in_quotes(tensor.dtype));
  const auto bytes = gguf_bytes(*type, tensor.shape);
  if (!bytes || *bytes != tensor.data.size()) {
    bad(tensor.dtype + " " + to_string(tensor.shape) + " does not take " +
        std::to_string(tensor.data.size()) + " bytes");
  }
  return *type;
}

void check_metadata(const std::string& path, const std::map<std::string, GgufValue>& metadata) {
  for (const auto& [key, value] : metadata) {
    const auto* const array = std::get_if<GgufArray>(&value);
    if (array != nullptr && std::holds_alternative<std::monostate>(*array))
      throw IoError(path + ": key " + in_quotes(key) + ": arrays of arrays are not supported");
  }
}

std::uint64_t alignment_of(const std::string& path, const GgufFile& file) {
  const auto found = file.metadata.find(kAlignmentKey);
  if (found == file.metadata.end()) return kUsualAlignment;
  const auto* const given = std::get_if<std::uint32_t>(&found->second);
  if (given != nullptr && std::has_single_bit(*given)) return *given;
  throw IoError(path + ": " + kAlignmentKey + ": expected a u32 that is a power of 2");
}

}  // namespace

const GgufType* gguf_type(std::uint32_t number) {
  const auto found = std::find_if(kGgufTypes.begin(), kGgufTypes.end(),
                                  [&](const GgufType& type) { return type.number == number; });
  return found == kGgufTypes.end() ? nullptr : &*found;
}

const GgufType* gguf_type(std::string_view name) {
  const auto found = std::find_if(kGgufTypes.begin(), kGgufTypes.end(),
                                  [&](const GgufType& type) { return type.name == name; });
  return found == kGgufTypes.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> gguf_bytes(const GgufType& type, const Shape& shape) {
  const std::int64_t row = shape.empty() ? 1 : shape.back();
  if (row < 0 || static_cast<std::uint64_t>(row) % type.elements != 0) return std::nullopt;
  Shape blocks = shape;
  if (!blocks.empty()) blocks.back() = row / static_cast<std::int64_t>(type.elements);
  return checked_bytes(blocks, type.bytes);
}

}  // namespace io

GgufFile read_gguf(const FileSource& source) { return io::GgufReader(source).read(); }

void write_gguf(const FileSink& sink, const GgufFile& file) {
  const std::string& path = sink.name();
  const std::uint64_t alignment = io::alignment_of(path, file);
  io::check_metadata(path, file.metadata);
  io::GgufHeader header;
  for (const char letter : io::kGgufMagic) header.add(letter);
  header.add(io::kGgufVersion);
  header.add(static_cast<std::uint64_t>(file.tensors.size()));
  header.add(static_cast<std::uint64_t>(file.metadata.size()));
  for (const auto& [key, value] : file.metadata) {
    header.add(key);
    header.add(value);
  }
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const io::GgufType& type = io::writable(path, name, tensor);
    header.add(name);
    header.add(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      header.add(static_cast<std::uint64_t>(*size));
    header.add(type.number);
    header.add(offset);
    offset += io::padded(tensor.data.size(), alignment);
  }
  const std::vector<std::byte> first = std::move(header).padded_to(alignment);
  io::OutputFile out(sink, first.size() + offset);
  out.write(first);
  const std::vector<std::byte> zeros(alignment);
  for (const auto& [name, tensor] : file.tensors) {
    out.write(tensor.data);
    const std::uint64_t end = tensor.data.size();
    out.write(std::span(zeros).first(io::padded(end, alignment) - end));
  }
  out.commit();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
