// SPDX-License-Identifier: MIT
// Writes messages of Protocol Buffers (protobuf.dev/programming-guides/encoding). A message is a
// sequence of fields; each is a tag (field number and wire type) and a value.
// protobuf_reader.h reads messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// The maximum size of a message for readers.
inline constexpr std::uint64_t kMaxProtoBytes = 0x7fffffff;

// A message under construction. Fields can be added in any order, repeated ones any number of
// times.
class ProtoMessage {
 public:
  // int32, int64, enum. A negative value takes ten bytes.
  void integer(int field, std::int64_t value);
  // double.
  void real(int field, double value);
  // float.
  void real32(int field, float value);
  // string, bytes.
  void text(int field, std::string_view bytes);
  void message(int field, const ProtoMessage& value);
  // repeated int64, packed.
  void integers(int field, std::span<const std::int64_t> values);
  // Writes the beginning of a string or message of `size` bytes; the caller writes the rest.
  void begin(int field, std::uint64_t size);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
