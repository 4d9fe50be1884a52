// SPDX-License-Identifier: MIT
#include "value.h"

#include <cstring>

#include "tensorgrad/error.h"

namespace tensorgrad::web {
namespace {

constexpr std::size_t kWord = 8;

constexpr std::size_t padded(std::size_t size) { return (size + kWord - 1) / kWord * kWord; }

// Decodes values from the remaining bytes.
struct Reader {
  std::span<const std::byte> rest;

  std::span<const std::byte> take(std::size_t size) {
    if (padded(size) > rest.size()) throw InternalError("a value of JavaScript is truncated");
    const auto taken = rest.first(size);
    rest = rest.subspan(padded(size));
    return taken;
  }
  template <class T>
  T scalar() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view text(std::size_t size) {
    const auto taken = take(size);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  Value value() {
    struct Header {
      std::uint32_t tag, count;
    };
    const auto head = scalar<Header>();
    Value result;
    result.kind = static_cast<Kind>(head.tag);
    switch (result.kind) {
      case Kind::kNothing: break;
      case Kind::kNumber: result.number = scalar<double>(); break;
      case Kind::kBool:
      case Kind::kTensor: result.number = head.count; break;
      case Kind::kString: result.text = text(head.count); break;
      case Kind::kList:
      case Kind::kObject:
        if (head.count > rest.size()) throw InternalError("a value of JavaScript is truncated");
        result.items.reserve(head.count);
        for (std::uint32_t i = 0; i < head.count; ++i) {
          if (result.kind == Kind::kObject) result.keys.push_back(value().text);
          result.items.push_back(value());
        }
        break;
      case Kind::kArray: {
        const auto type = scalar<Header>();
        result.dtype = type.tag;
        result.count = head.count;
        result.text = text(type.count);
        break;
      }
      default:
        throw InternalError("a value of JavaScript has the unknown tag " +
                            std::to_string(head.tag));
    }
    return result;
  }
};

}  // namespace

const Value& Value::operator[](std::string_view key) const {
  static const Value nothing;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return items[i];
  }
  return nothing;
}

std::string Value::description() const {
  switch (kind) {
    case Kind::kNothing: return "nothing";
    case Kind::kNumber: {
      std::string digits = std::to_string(number);
      while (digits.find('.') != std::string::npos &&
             (digits.back() == '0' || digits.back() == '.')) {
        const bool point = digits.back() == '.';
        digits.pop_back();
        if (point) break;
      }
      return digits;
    }
    case Kind::kBool: return number != 0 ? "true" : "false";
    case Kind::kString: return "'" + std::string(text.substr(0, 40)) + "'";
    case Kind::kList: return "an array of " + std::to_string(items.size());
    case Kind::kObject: return "an object";
    case Kind::kTensor: return "a tensor";
    case Kind::kArray: return "a typed array of " + std::to_string(count);
  }
  return "?";
}

Value decode(std::span<const std::byte> bytes) { return Reader{bytes}.value(); }

void Writer::raw(const void* data, std::size_t size) {
  const std::size_t at = bytes_.size();
  bytes_.resize(at + padded(size));
  if (size != 0) std::memcpy(bytes_.data() + at, data, size);
}

void Writer::header(Kind kind, std::size_t count) {
  const std::uint32_t words[] = {static_cast<std::uint32_t>(kind),
                                 static_cast<std::uint32_t>(count)};
  raw(words, sizeof words);
}

void Writer::number(double value) {
  header(Kind::kNumber, 0);
  raw(&value, sizeof value);
}

void Writer::string(std::string_view text) {
  header(Kind::kString, text.size());
  raw(text.data(), text.size());
}

void Writer::tensor(std::uint32_t id, const Shape& shape, DType dtype) {
  header(Kind::kTensor, id);
  const std::uint32_t words[] = {static_cast<std::uint32_t>(dtype),
                                 static_cast<std::uint32_t>(shape.size())};
  raw(words, sizeof words);
  for (const std::int64_t size : shape) {
    const auto as_double = static_cast<double>(size);
    raw(&as_double, sizeof as_double);
  }
}

void Writer::array(std::uint32_t dtype, std::size_t count, std::span<const std::byte> content) {
  header(Kind::kArray, count);
  const std::uint32_t words[] = {dtype, static_cast<std::uint32_t>(content.size())};
  raw(words, sizeof words);
  raw(content.data(), content.size());
}

}  // namespace tensorgrad::web
