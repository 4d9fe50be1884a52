// SPDX-License-Identifier: MIT
// Reads the JSON header of a safetensors file as a stream of tokens, then checks the layout. This
// detects duplicate keys, and a malicious header takes no more memory than its own size.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/safetensors.h"
#include "io/text.h"
#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace io {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

struct StoredType {
  std::string_view name;
  std::size_t bytes;
};

// In the order of the reference implementation, which writes tensors of the last types first.
constexpr std::array<StoredType, 19> kStoredTypes = {{
    {"BOOL", 1},    {"U8", 1},          {"I8", 1},          {"F8_E5M2", 1}, {"F8_E4M3", 1},
    {"F8_E8M0", 1}, {"F8_E4M3FNUZ", 1}, {"F8_E5M2FNUZ", 1}, {"I16", 2},     {"U16", 2},
    {"F16", 2},     {"BF16", 2},        {"I32", 4},         {"U32", 4},     {"F32", 4},
    {"C64", 8},     {"F64", 8},         {"I64", 8},         {"U64", 8},
}};

// A character pointer that records how far the lexer has read.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// Parses {"__metadata__": {str: str}, name: {"dtype", "shape", "data_offsets"}}.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(std::string_view json, std::string_view file)
      : json_(json), file_(file), seen_(json.data()) {}

  void read() {
    const char* const end = json_.data() + json_.size();
    nlohmann::json::sax_parse(Cursor(json_.data(), &seen_), Cursor(end, &seen_), this);
    // The lexer treats a NUL as the end of its input and would ignore the rest.
    if (seen_ != end) fail("a zero byte in the header", "only spaces may follow the JSON");
  }
  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool number_float(double, const std::string& text) override {
    number_just_read_ = true;
    if (place_ != Place::kShape && place_ != Place::kOffsets) return unexpected("a number");
    fail("the number " + in_quotes(text), "expected a non-negative integer below 2^63");
  }
  bool number_integer(std::int64_t value) override {
    number_just_read_ = true;
    if (place_ != Place::kShape && place_ != Place::kOffsets) return unexpected("a number");
    fail("the negative number " + std::to_string(value), "expected a non-negative integer");
  }
  bool number_unsigned(std::uint64_t value) override;
  bool string(std::string& value) override;
  bool start_object(std::size_t) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool key(std::string& name) override;
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    const std::size_t at = std::min(position > 0 ? position - 1 : 0, json_.size());
    const std::string what =
        at == json_.size() ? "unexpected end" : "unexpected " + in_quotes(json_.substr(at, 1));
    throw IoError(std::string(file_) + ": header is not JSON at byte " +
                  std::to_string(kLengthBytes + at) + ": " + what);
  }

 private:
  enum class Place { kStart, kRoot, kMetadata, kTensor, kShape, kOffsets, kEnd };
  enum Field : unsigned { kDtype = 1, kShapeField = 2, kOffsetsField = 4, kAllFields = 7 };

  [[nodiscard]] std::uint64_t byte() const {
    const auto read = static_cast<std::uint64_t>(seen_ - json_.data());
    const std::uint64_t ahead = number_just_read_ ? 2 : 1;  // a number ends one token too late
    return kLengthBytes + (read > ahead ? read - ahead : 0);
  }
  [[nodiscard]] std::string expected() const;
  bool unexpected(const std::string& what) { fail(what, expected()); }
  [[noreturn]] void fail(const std::string& what, const std::string& wanted) const {
    std::string where;
    if (in_metadata_) {
      where = "metadata: ";
    } else if (in_tensor_) {
      where = "tensor " + in_quotes(entry_.name) + ": ";
    }
    throw IoError(std::string(file_) + ": " + where + what + " at byte " + std::to_string(byte()) +
                  ": " + wanted);
  }

  std::string_view json_;
  std::string_view file_;
  const char* seen_;
  bool number_just_read_ = false;
  Place place_ = Place::kStart;
  bool in_tensor_ = false;  // from a tensor's name to the end of its object
  bool in_metadata_ = false;
  std::string key_;      // last key of the innermost object
  unsigned fields_ = 0;  // of the current tensor
  std::vector<std::uint64_t> offsets_;
  SafetensorsEntry entry_;
  std::set<std::string, std::less<>> names_;
  SafetensorsHeader header_;
};

std::string HeaderReader::expected() const {
  switch (place_) {
    case Place::kStart: return "expected an object";
    case Place::kRoot: return "expected an object";
    case Place::kMetadata: return "expected a string for " + in_quotes(key_);
    case Place::kShape:
    case Place::kOffsets: return "expected an integer";
    case Place::kTensor:
      return std::string("expected ") + (key_ == "dtype" ? "a string" : "an array") + " for " +
             in_quotes(key_);
    case Place::kEnd: break;
  }
  return "expected the end of the header";
}

bool HeaderReader::number_unsigned(std::uint64_t value) {
  number_just_read_ = true;
  if (place_ != Place::kShape && place_ != Place::kOffsets) return unexpected("a number");
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    fail("the number " + std::to_string(value), "expected a non-negative integer below 2^63");
  }
  if (place_ == Place::kShape) {
    if (entry_.shape.size() == kMaxStoredRank) {
      fail("too many sizes", "expected at most " + std::to_string(kMaxStoredRank));
    }
    entry_.shape.push_back(static_cast<std::int64_t>(value));
  } else {
    if (offsets_.size() == 2) fail("a third data offset", "expected two");
    offsets_.push_back(value);
  }
  number_just_read_ = false;
  return true;
}

bool HeaderReader::string(std::string& value) {
  if (place_ == Place::kMetadata) {
    header_.metadata[key_] = std::move(value);
    return true;
  }
  if (place_ != Place::kTensor || key_ != "dtype") return unexpected("a string");
  if (stored_dtype_rank(value) < 0) {
    fail("unknown dtype " + in_quotes(value),
         "expected F32, I32, U32, BOOL or another dtype of the format");
  }
  entry_.dtype = std::move(value);
  return true;
}

bool HeaderReader::start_object(std::size_t) {
  if (place_ == Place::kStart) {
    place_ = Place::kRoot;
  } else if (place_ == Place::kRoot) {
    place_ = in_metadata_ ? Place::kMetadata : Place::kTensor;
  } else {
    return unexpected("an object");
  }
  return true;
}

bool HeaderReader::end_object() {
  if (place_ == Place::kRoot) {
    place_ = Place::kEnd;
    return true;
  }
  if (place_ == Place::kTensor) {
    if (fields_ != kAllFields) {
      const char* missing = !(fields_ & kDtype)        ? "dtype"
                            : !(fields_ & kShapeField) ? "shape"
                                                       : "data_offsets";
      fail("no " + std::string(missing), "expected dtype, shape and data_offsets");
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    entry_.header_byte = byte();
    header_.entries.push_back(std::move(entry_));
    entry_ = {};
    in_tensor_ = false;
  }
  in_metadata_ = false;
  place_ = Place::kRoot;
  return true;
}

bool HeaderReader::start_array(std::size_t) {
  if (place_ != Place::kTensor || key_ == "dtype") return unexpected("an array");
  place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
  return true;
}

bool HeaderReader::end_array() {
  if (place_ == Place::kOffsets && offsets_.size() != 2) {
    fail(std::to_string(offsets_.size()) + " data offsets", "expected two");
  }
  place_ = Place::kTensor;
  return true;
}

bool HeaderReader::key(std::string& name) {
  if (place_ == Place::kRoot) {
    if (!names_.insert(name).second) {
      fail("duplicate name " + in_quotes(name), "expected each name once");
    }
    in_metadata_ = name == "__metadata__";
    if (!in_metadata_) {
      entry_.name = name;
      in_tensor_ = true;
      fields_ = 0;
      offsets_.clear();
    }
  } else if (place_ == Place::kMetadata) {
    if (header_.metadata.contains(name)) {
      fail("duplicate key " + in_quotes(name), "expected each key once");
    }
  } else {
    const unsigned field = name == "dtype"          ? kDtype
                           : name == "shape"        ? kShapeField
                           : name == "data_offsets" ? kOffsetsField
                                                    : 0U;
    if (field == 0) {
      fail("unknown key " + in_quotes(name), "expected dtype, shape and data_offsets");
    }
    if ((fields_ & field) != 0) {
      fail("duplicate key " + in_quotes(name), "expected each key once");
    }
    fields_ |= field;
  }
  key_ = std::move(name);
  return true;
}

// Sorts the entries by offset and checks that they cover the data bytes [0, data_bytes).
void check_layout(SafetensorsHeader& header, std::uint64_t data_bytes, std::string_view file) {
  const auto fail = [&](const SafetensorsEntry& e, std::uint64_t byte, const std::string& what) {
    throw IoError(std::string(file) + ": tensor " + in_quotes(e.name) + ": " + what + " at byte " +
                  std::to_string(byte));
  };
  const auto range = [](const SafetensorsEntry& e) {
    return "[" + std::to_string(e.begin) + "," + std::to_string(e.end) + "]";
  };
  for (const SafetensorsEntry& e : header.entries) {
    if (e.begin > e.end) fail(e, e.header_byte, "data offsets " + range(e) + " are reversed");
    if (e.end > data_bytes) {
      fail(e, e.header_byte,
           "data offsets " + range(e) + " reach past the " + std::to_string(data_bytes) +
               " bytes of data");
    }
    const auto bytes = checked_bytes(e.shape, stored_dtype_bytes(e.dtype));
    if (!bytes) fail(e, e.header_byte, "shape " + to_string(e.shape) + " is too large");
    if (*bytes != e.end - e.begin) {
      fail(e, e.header_byte,
           e.dtype + " " + to_string(e.shape) + " takes " + std::to_string(*bytes) +
               " bytes but data offsets " + range(e) + " span " + std::to_string(e.end - e.begin));
    }
  }
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t next = 0;
  const SafetensorsEntry* before = nullptr;
  for (const SafetensorsEntry& e : header.entries) {
    if (e.begin < next) {
      fail(e, header.data_start + e.begin, "overlaps tensor " + in_quotes(before->name));
    }
    if (e.begin > next) {
      fail(e, header.data_start + next,
           "a gap of " + std::to_string(e.begin - next) + " bytes before it");
    }
    next = e.end;
    before = &e;
  }
  if (next != data_bytes) {
    throw IoError(std::string(file) + ": " + std::to_string(data_bytes - next) +
                  " bytes that belong to no tensor at byte " +
                  std::to_string(header.data_start + next));
  }
}

}  // namespace

int stored_dtype_rank(std::string_view dtype) {
  for (std::size_t i = 0; i < kStoredTypes.size(); ++i) {
    if (kStoredTypes[i].name == dtype) return static_cast<int>(i);
  }
  return -1;
}

std::uint64_t checked_header_length(std::string_view first_bytes, std::uint64_t file_bytes,
                                    std::string_view file) {
  if (first_bytes.size() < kLengthBytes) {
    throw IoError(std::string(file) + ": truncated at byte " + std::to_string(first_bytes.size()) +
                  ": expected an 8-byte header length");
  }
  std::uint64_t length = 0;
  std::memcpy(&length, first_bytes.data(), kLengthBytes);
  const auto fail = [&](const std::string& wanted) {
    throw IoError(std::string(file) + ": header length " + std::to_string(length) +
                  " at byte 0: " + wanted);
  };
  if (length > kMaxSafetensorsHeader) {
    fail("expected at most " + std::to_string(kMaxSafetensorsHeader) + " (is this safetensors?)");
  }
  if (length > file_bytes - kLengthBytes) {
    fail("the file has only " + std::to_string(file_bytes - kLengthBytes) + " more bytes");
  }
  if (length < 2) fail("expected at least 2");
  return length;
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t file_bytes,
                                           std::string_view file) {
  if (json.empty() || json[0] != '{') {
    throw IoError(std::string(file) + ": header starts with " + in_quotes(json.substr(0, 1)) +
                  " at byte 8: expected \"{\"");
  }
  HeaderReader reader(json, file);
  reader.read();
  SafetensorsHeader header = reader.take();
  header.data_start = kLengthBytes + json.size();
  check_layout(header, file_bytes - header.data_start, file);
  return header;
}

}  // namespace io

std::size_t stored_dtype_bytes(std::string_view dtype) {
  const int rank = io::stored_dtype_rank(dtype);
  return rank < 0 ? 0 : io::kStoredTypes[static_cast<std::size_t>(rank)].bytes;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
