// SPDX-License-Identifier: MIT
// Reads messages of Protocol Buffers field by field, without a schema. Works in place: needs no
// memory beyond the message itself, whatever lengths the message claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// A cursor over the fields of a message. Errors are IoErrors that name the file and the byte.
// Skips no fields: the caller ignores those whose number it does not know.
class ProtoReader {
 public:
  // Reads a whole file, which must outlive the reader. `file` names it in errors.
  ProtoReader(std::string_view bytes, std::string file);

  // Reads the next field. Returns false at the end of the message. Throws IoError if a tag or a
  // value is truncated, a length exceeds the message, or a field is a group.
  bool next();

  // The number of the field that next() read.
  [[nodiscard]] std::uint64_t number() const { return number_; }

  // Returns the value of the field. `name` names the field in errors. Throws IoError if its wire
  // type is another one, or if a boolean is neither 0 nor 1 or an integer exceeds 32 bits.
  [[nodiscard]] std::int32_t integer(const char* name) const;  // int32, enum
  [[nodiscard]] bool boolean(const char* name) const;
  [[nodiscard]] float real32(const char* name) const;
  [[nodiscard]] std::string_view text(const char* name) const;  // string, bytes
  // Returns a reader of the message in the field.
  [[nodiscard]] ProtoReader message(const char* name) const;

  // Throws IoError about the field that next() read.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  ProtoReader(std::string_view bytes, std::string file, std::size_t begin);
  std::uint64_t varint();
  std::string_view take(std::uint64_t size);
  void expect(const char* name, std::uint64_t kind) const;

  std::string_view bytes_;
  std::string file_;
  std::size_t begin_ = 0;  // position of the message in the file
  std::size_t at_ = 0;     // end of the field, from the beginning of the message
  std::size_t field_ = 0;  // begin of the field
  std::uint64_t number_ = 0, kind_ = 0;
  std::uint64_t value_ = 0;         // of an integer
  std::string_view contents_ = {};  // of other fields
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
