// SPDX-License-Identifier: MIT
#include "io/protobuf_reader.h"

#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

constexpr std::uint64_t kWireInteger = 0, kWire64 = 1, kWireBytes = 2, kWire32 = 5;
constexpr std::array<const char*, 8> kWireNames = {
    "an integer", "8 bytes", "a length and bytes", "a group", "a group", "4 bytes", "?", "?"};

}  // namespace

ProtoReader::ProtoReader(std::string_view bytes, std::string file)
    : ProtoReader(bytes, std::move(file), 0) {}

ProtoReader::ProtoReader(std::string_view bytes, std::string file, std::size_t begin)
    : bytes_(bytes), file_(std::move(file)), begin_(begin) {}

void ProtoReader::fail(const std::string& what) const {
  throw IoError(file_ + ": byte " + std::to_string(begin_ + field_) + ": " + what);
}

std::uint64_t ProtoReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ == bytes_.size()) fail("expected an integer, got the end of the message");
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  fail("expected an integer of at most 10 bytes");
}

std::string_view ProtoReader::take(std::uint64_t size) {
  if (size > bytes_.size() - at_) {
    fail("expected " + std::to_string(size) + " bytes, but the message ends after " +
         std::to_string(bytes_.size() - at_));
  }
  const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(size));
  at_ += taken.size();
  return taken;
}

bool ProtoReader::next() {
  field_ = at_;
  if (at_ == bytes_.size()) return false;
  const std::uint64_t tag = varint();
  number_ = tag >> 3U;
  kind_ = tag & 7U;
  if (number_ == 0 || number_ > 0x1fffffff)
    fail("expected the tag of a protobuf field, got " + std::to_string(tag));
  switch (kind_) {
    case kWireInteger: value_ = varint(); break;
    case kWire64: contents_ = take(8); break;
    case kWireBytes: contents_ = take(varint()); break;
    case kWire32: contents_ = take(4); break;
    default: fail("the wire type " + std::to_string(kind_) + " is not supported");
  }
  return true;
}

void ProtoReader::expect(const char* name, std::uint64_t kind) const {
  if (kind_ == kind) return;
  fail(std::string(name) + ": expected " + kWireNames[kind] + ", got " + kWireNames[kind_]);
}

std::int32_t ProtoReader::integer(const char* name) const {
  expect(name, kWireInteger);
  const auto value = static_cast<std::int64_t>(value_);
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    fail(std::string(name) + ": expected an integer of 32 bits, got " + std::to_string(value));
  }
  return static_cast<std::int32_t>(value);
}

bool ProtoReader::boolean(const char* name) const {
  expect(name, kWireInteger);
  if (value_ > 1) fail(std::string(name) + ": expected 0 or 1, got " + std::to_string(value_));
  return value_ == 1;
}

float ProtoReader::real32(const char* name) const {
  expect(name, kWire32);
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 4; ++i)
    bits |= std::uint32_t{static_cast<unsigned char>(contents_[i])} << (8 * i);
  return std::bit_cast<float>(bits);
}

std::string_view ProtoReader::text(const char* name) const {
  expect(name, kWireBytes);
  return contents_;
}

ProtoReader ProtoReader::message(const char* name) const {
  expect(name, kWireBytes);
  return {contents_, file_, begin_ + at_ - contents_.size()};
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
