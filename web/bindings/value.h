// SPDX-License-Identifier: MIT
// JavaScript values as passed to WebAssembly and back. web/src/wire.ts is the other side.
//
// A value is a header of two 32-bit words, a tag and a count, then its content, padded to 8 bytes:
//   0 nothing   1 number: a double   2 boolean: the count   3 string: `count` bytes of UTF-8
//   4 list: `count` values           5 object: `count` pairs of a string and a value
//   6 tensor: the count is its id; of a result: words for dtype and rank, then a double per size
//   7 array: `count` elements, after two words: the dtype of the elements and their bytes
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::web {

enum class Kind : std::uint32_t {
  kNothing,
  kNumber,
  kBool,
  kString,
  kList,
  kObject,
  kTensor,
  kArray
};

// dtype of an array of bytes; others are numbered as in DType.
inline constexpr std::uint32_t kBytes = 16;

// A decoded value. It refers to the bytes that it was decoded from.
struct Value {
  Kind kind = Kind::kNothing;
  double number = 0;                   // of a number; id of a tensor; 0 or 1 of a boolean
  std::string_view text;               // of a string; the bytes of an array
  std::uint32_t dtype = 0;             // of an array
  std::size_t count = 0;               // elements of an array
  std::vector<std::string_view> keys;  // of an object, whose values are the items
  std::vector<Value> items;            // of a list or an object

  [[nodiscard]] bool present() const { return kind != Kind::kNothing; }
  // Returns the value of a key of an object, or nothing if the key is absent.
  [[nodiscard]] const Value& operator[](std::string_view key) const;
  // Returns a description for errors: "a string 'abc'", "a list of 3" ...
  [[nodiscard]] std::string description() const;
};

// Decodes one value. Throws InternalError if the bytes are not one.
Value decode(std::span<const std::byte> bytes);

// Encodes values one after another.
class Writer {
 public:
  void nothing() { header(Kind::kNothing, 0); }
  void number(double value);
  void boolean(bool value) { header(Kind::kBool, value ? 1 : 0); }
  void string(std::string_view text);
  void list(std::size_t count) { header(Kind::kList, count); }
  // The pairs follow: key(), then a value.
  void object(std::size_t count) { header(Kind::kObject, count); }
  void key(std::string_view name) { string(name); }
  void tensor(std::uint32_t id, const Shape& shape, DType dtype);
  void array(std::uint32_t dtype, std::size_t count, std::span<const std::byte> content);

  // Appends encoded values.
  void append(const std::vector<std::byte>& encoded) {
    bytes_.insert(bytes_.end(), encoded.begin(), encoded.end());
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  void header(Kind kind, std::size_t count);
  void raw(const void* data, std::size_t size);

  std::vector<std::byte> bytes_;
};

}  // namespace tensorgrad::web
