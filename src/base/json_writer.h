// SPDX-License-Identifier: MIT
// Compact JSON, written as text.
#pragma once

#include <concepts>
#include <ranges>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// What to do with text that is not valid UTF-8: throw nlohmann::json::type_error, or replace the
// invalid bytes by U+FFFD.
enum class InvalidUtf8 { kThrow, kReplace };

// Returns `text` as a JSON string.
inline std::string json_quoted(std::string_view text, InvalidUtf8 invalid = InvalidUtf8::kThrow) {
  using Handler = nlohmann::json::error_handler_t;
  return nlohmann::json(text).dump(
      -1, ' ', false, invalid == InvalidUtf8::kThrow ? Handler::strict : Handler::replace);
}

// Appends the tokens of a JSON document in order. Unlike a tree of nlohmann::json, whose destructor
// allocates and terminates the process if that fails, it can be destroyed if memory runs short.
class JsonWriter {
 public:
  explicit JsonWriter(InvalidUtf8 invalid = InvalidUtf8::kThrow) : invalid_(invalid) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  // Begins a member of an object. A value, object or array must follow.
  JsonWriter& key(std::string_view name) {
    append(json_quoted(name, invalid_) + ':');
    comma_ = false;
    return *this;
  }

  JsonWriter& value(std::string_view text) { return append(json_quoted(text, invalid_)); }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth) { return append(truth ? "true" : "false"); }
  JsonWriter& value(std::integral auto number) { return append(std::to_string(number)); }
  // Appends the shortest number that reads back equal, or null if it is not finite.
  JsonWriter& value(double number) { return append(nlohmann::json(number).dump()); }
  template <std::ranges::input_range Values>
    requires(!std::convertible_to<const Values&, std::string_view>)
  JsonWriter& value(const Values& values) {
    begin_array();
    for (const auto& each : values) value(each);
    return end_array();
  }
  // Appends a document that another writer has written.
  JsonWriter& json(const JsonWriter& document) { return append(document.text_); }

  // Appends a member of an object.
  JsonWriter& member(std::string_view name, const auto& content) {
    return key(name).value(content);
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  JsonWriter& open(char bracket) {
    append(std::string_view(&bracket, 1));
    comma_ = false;
    return *this;
  }
  JsonWriter& close(char bracket) {
    text_ += bracket;
    comma_ = true;
    return *this;
  }
  JsonWriter& append(std::string_view token) {
    if (comma_) text_ += ',';
    text_ += token;
    comma_ = true;
    return *this;
  }

  InvalidUtf8 invalid_;
  std::string text_;
  bool comma_ = false;  // whether a comma must precede the next token
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
