// SPDX-License-Identifier: MIT
// Writing messages of Protocol Buffers (protobuf.dev/programming-guides/encoding): fields one after
// another, each a tag (its number and its kind) and a value. Nothing here reads any.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// What a reader takes at most for one message.
inline constexpr std::uint64_t kMostProtoBytes = 0x7fffffff;

// A message in the making. Fields may come in any order, and repeated ones any number of times.
class ProtoMessage {
 public:
  // int32, int64, enum; a negative value takes ten bytes.
  void integer(int field, std::int64_t value);
  // string, bytes.
  void text(int field, std::string_view bytes);
  void message(int field, const ProtoMessage& value);
  // repeated int64, packed.
  void integers(int field, std::span<const std::int64_t> values);
  // Only what comes before the `size` bytes of a string or a message, which the caller writes.
  void begin(int field, std::uint64_t size);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);

  std::string bytes_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
