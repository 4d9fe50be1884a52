// SPDX-License-Identifier: MIT
// Typed access to the metadata of a GGUF file. Errors name the file and the key.
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

// Metadata with keys that begin with a prefix. Throws IoError if a value has another type or is out
// of range, or if a key without a default is missing.
class GgufFields {
 public:
  GgufFields(const GgufMetadata& all, std::string file, std::string prefix)
      : all_(all), file_(std::move(file)), prefix_(std::move(prefix)) {}

  [[nodiscard]] bool has(const std::string& key) const { return find(key) != nullptr; }
  // Returns a value of any integer type, from `least` to `most`.
  [[nodiscard]] std::int64_t integer(const std::string& key, std::int64_t least,
                                     std::int64_t most) const;
  [[nodiscard]] double number(const std::string& key) const;  // finite and at least 0
  [[nodiscard]] bool boolean_or(const std::string& key, bool usual) const;
  [[nodiscard]] const std::string& text(const std::string& key) const;
  template <class T>
  [[nodiscard]] const std::vector<T>& list(const std::string& key) const {
    const auto* const array = std::get_if<GgufArray>(&at(key));
    const auto* const found = array == nullptr ? nullptr : std::get_if<std::vector<T>>(array);
    if (found == nullptr) fail(key, "expected another type of array");
    return *found;
  }
  // Throws IoError if a key with the prefix is not one of `keys`.
  void known(std::initializer_list<const char*> keys) const;

  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  [[nodiscard]] const GgufValue* find(const std::string& key) const;
  [[nodiscard]] const GgufValue& at(const std::string& key) const;

  const GgufMetadata& all_;
  std::string file_, prefix_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
