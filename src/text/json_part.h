// SPDX-License-Identifier: MIT
// Access to parts of a JSON file with error messages that name the location.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/text.h"
#include "tensorgrad/error.h"
#include "text/bpe.h"

namespace tensorgrad::text {

using Json = nlohmann::json;

// A part of the file with its location.
class Part {
 public:
  Part(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw IoError(where_ + (is_root() ? "" : ": ") + what);
  }
  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] bool is_null() const { return json_.is_null(); }

  // Returns a member, or null if it is missing.
  [[nodiscard]] Part operator[](const std::string& key) const {
    static const Json none;
    expect(json_.is_object(), "an object");
    const auto found = json_.find(key);
    return {found == json_.end() ? none : *found, where_ + (is_root() ? "" : ".") + key};
  }
  [[nodiscard]] std::vector<Part> list() const {
    expect(json_.is_array(), "an array");
    std::vector<Part> parts;
    for (std::size_t i = 0; i < json_.size(); ++i) {
      parts.emplace_back(json_[i], where_ + "[" + std::to_string(i) + "]");
    }
    return parts;
  }
  [[nodiscard]] std::vector<std::pair<std::string, Part>> object() const {
    expect(json_.is_object(), "an object");
    std::vector<std::pair<std::string, Part>> parts;
    for (const auto& [key, value] : json_.items())
      parts.emplace_back(key, Part(value, where_ + "." + key));
    return parts;
  }
  [[nodiscard]] const std::string& string() const {
    expect(json_.is_string(), "a string");
    return json_.get_ref<const std::string&>();
  }
  // Returns the boolean, or `otherwise` if it is missing or null.
  [[nodiscard]] bool boolean(bool otherwise) const {
    if (json_.is_null()) return otherwise;
    expect(json_.is_boolean(), "true or false");
    return json_.get<bool>();
  }
  [[nodiscard]] Id id() const {
    expect(json_.is_number_unsigned() &&
               json_.get<std::uint64_t>() < std::uint64_t{std::numeric_limits<Id>::max()},
           "an id of 0 to 2147483646");
    return json_.get<Id>();
  }
  // Returns the value that `known` has for the string.
  template <class Value>
  [[nodiscard]] Value one_of(std::initializer_list<std::pair<const char*, Value>> known) const {
    const std::string& given = string();
    std::string names;
    for (const auto& [name, value] : known) {
      if (given == name) return value;
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
    fail(io::in_quotes(given) + " is not supported; expected " + names);
  }

 private:
  // The location of the root is "FILE: ".
  [[nodiscard]] bool is_root() const { return where_.ends_with(": "); }
  void expect(bool good, const char* what) const {
    if (good) return;
    fail((json_.is_null() ? "is missing; expected " : "expected ") + std::string(what) +
         (json_.is_null() ? "" : std::string(", got ") + json_.type_name()));
  }

  const Json& json_;
  std::string where_;
};

}  // namespace tensorgrad::text
