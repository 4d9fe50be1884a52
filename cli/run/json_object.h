// SPDX-License-Identifier: MIT
// Reads JSON files that tg has written and users may have edited. Every value is checked for its
// type and range. Errors name the file and the member.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace tensorgrad::cli {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 31;

// Returns the parsed file. Throws IoError if it does not exist, is larger than `max_bytes`, is not
// valid JSON, is nested too deeply or has a number that does not fit a double.
nlohmann::ordered_json read_json_file(const std::string& path, std::uint64_t max_bytes);

// Returns the text of an object with the member "checksum", a hash of the others.
std::string with_checksum(nlohmann::ordered_json object);

// Returns a path as JSON: a string, or an object with its bytes if it is not UTF-8.
nlohmann::ordered_json path_json(const std::string& path);

// An object whose members are read by name, type and range. Holds a reference to the JSON value.
class JsonObject {
 public:
  using Json = nlohmann::ordered_json;

  // `name` is the path of the object in the file; empty for the top level. Throws IoError if
  // `object` is not a JSON object.
  JsonObject(const Json& object, std::string path, std::string name);

  // Each returns a member. Throws IoError if the member is missing, has another type or is out of
  // range, or if an array has more than `most` elements.
  [[nodiscard]] JsonObject object(const char* key) const;
  [[nodiscard]] std::int64_t integer(const char* key, std::int64_t low, std::int64_t high) const;
  [[nodiscard]] std::vector<std::int64_t> integers(const char* key, std::size_t most) const;
  [[nodiscard]] double number(const char* key, double low, double high) const;
  [[nodiscard]] std::vector<double> numbers(const char* key, double low) const;
  [[nodiscard]] std::string text(const char* key) const;
  [[nodiscard]] std::vector<std::string> texts(const char* key, std::size_t most) const;
  // As text() and texts(), of path_json().
  [[nodiscard]] std::string path(const char* key) const;
  [[nodiscard]] std::vector<std::string> paths(const char* key, std::size_t most) const;
  // Returns an object of strings; an empty one if the member is missing.
  [[nodiscard]] std::map<std::string, std::string> texts_by_name(const char* key) const;
  [[nodiscard]] bool boolean(const char* key) const;
  // Returns `otherwise` if the member is missing.
  [[nodiscard]] bool boolean_or(const char* key, bool otherwise) const;
  [[nodiscard]] double number_or(const char* key, double low, double high, double otherwise) const;
  [[nodiscard]] std::string text_or(const char* key, const std::string& otherwise) const;
  // Throws IoError if the object differs from its checksum, which with_checksum() wrote. A file of
  // an older version has none; users who edit a file set it to "none".
  void check_checksum() const;
  // Throws IoError if the run has another `format`, i.e. was not written by `tool`, or another
  // `version`.
  void check_run(const char* format, std::int64_t version, std::string_view tool) const;
  // Returns a member of any type. Throws IoError if it is missing.
  [[nodiscard]] const Json& at(const char* key) const;

  // Throws IoError with the path of the file, `what` and `expected`.
  [[noreturn]] void fail(std::string_view what, std::string_view expected) const;

 private:
  [[nodiscard]] std::string full(const char* key) const;
  [[nodiscard]] const Json& array(const char* key, std::size_t most) const;
  [[nodiscard]] std::int64_t as_integer(const Json& value, const std::string& name,
                                        std::int64_t low, std::int64_t high) const;
  [[nodiscard]] double as_number(const Json& value, const std::string& name, double low,
                                 double high) const;
  [[nodiscard]] std::string as_text(const Json& value, const std::string& name) const;
  [[nodiscard]] std::string as_path(const Json& value, const std::string& name) const;

  const Json& object_;
  std::string path_;
  std::string name_;
};

}  // namespace tensorgrad::cli
