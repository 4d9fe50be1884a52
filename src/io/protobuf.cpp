// SPDX-License-Identifier: MIT
#include "io/protobuf.h"

#include <bit>

#include "io/little_endian.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

constexpr std::uint64_t kVarint = 0, kFixed64 = 1, kLengthAndBytes = 2, kFixed32 = 5;  // wire types

std::uint64_t tag(int field, std::uint64_t kind) {
  return static_cast<std::uint64_t>(field) << 3U | kind;
}

}  // namespace

// Writes seven bits per byte, lowest first. The eighth bit is set if more bytes follow.
void ProtoMessage::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(value | 0x80);
  bytes_ += static_cast<char>(value);
}

void ProtoMessage::integer(int field, std::int64_t value) {
  varint(tag(field, kVarint));
  varint(static_cast<std::uint64_t>(value));
}

void ProtoMessage::real(int field, double value) {
  varint(tag(field, kFixed64));
  append_number(bytes_, std::bit_cast<std::uint64_t>(value), 8);
}

void ProtoMessage::real32(int field, float value) {
  varint(tag(field, kFixed32));
  append_number(bytes_, std::bit_cast<std::uint32_t>(value), 4);
}

void ProtoMessage::begin(int field, std::uint64_t size) {
  varint(tag(field, kLengthAndBytes));
  varint(size);
}

void ProtoMessage::text(int field, std::string_view bytes) {
  begin(field, bytes.size());
  bytes_ += bytes;
}

void ProtoMessage::message(int field, const ProtoMessage& value) { text(field, value.bytes()); }

void ProtoMessage::integers(int field, std::span<const std::int64_t> values) {
  ProtoMessage packed;
  for (const std::int64_t value : values) packed.varint(static_cast<std::uint64_t>(value));
  message(field, packed);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
