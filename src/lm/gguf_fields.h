// SPDX-License-Identifier: MIT
// The metadata of a GGUF file by type. Messages name the file and the key.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/data/gguf.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

using GgufMetadata = std::map<std::string, GgufValue>;

// Keys that begin with a prefix. IoError: a value of another type or out of range, a key that is
// missing where no other value is given.
class GgufFields {
 public:
  GgufFields(const GgufMetadata& all, std::string file, std::string prefix)
      : all_(all), file_(std::move(file)), prefix_(std::move(prefix)) {}

  [[nodiscard]] bool has(const std::string& key) const { return find(key) != nullptr; }
  // Of any integer type.
  [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t least,
                                     std::int64_t most) const;
  [[nodiscard]] double number(const std::string& key) const;  // at least 0, finite
  [[nodiscard]] bool boolean_or(const std::string& key, bool usual) const;
  [[nodiscard]] const std::string& text(const std::string& key) const;
  template <class T>
  [[nodiscard]] const std::vector<T>& list(const std::string& key) const {
    const auto* const array = std::get_if<GgufArray>(&at(key));
    const auto* const found = array == nullptr ? nullptr : std::get_if<std::vector<T>>(array);
    if (found == nullptr) fail(key, "expected another type of array");
    return *found;
  }
  // IoError: keys with the prefix that are none of these.
  void known(std::initializer_list<const char*> keys) const;

  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  [[nodiscard]] const GgufValue* find(const std::string& key) const;
  [[nodiscard]] const GgufValue& at(const std::string& key) const;

  const GgufMetadata& all_;
  std::string file_, prefix_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
