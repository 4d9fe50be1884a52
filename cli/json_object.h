// SPDX-License-Identifier: MIT
// Reading of the JSON files that tg has written, which others may have changed: every value has a
// type and a range, and IoErrors name the file and the member.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace tensorgrad::cli {

constexpr std::int64_t kMostElements = std::int64_t{1} << 31;

// IoError: no such file, longer than `max_bytes`, or no JSON.
nlohmann::ordered_json read_json_file(const std::string& path, std::uint64_t max_bytes);

// An object whose members are taken by name, type and range. Refers to it.
class JsonObject {
 public:
  using Json = nlohmann::ordered_json;

  // `name` is the object's place in the file; empty: it is all of it.
  JsonObject(const Json& object, std::string path, std::string name);

  [[nodiscard]] JsonObject object(const char* key) const;
  [[nodiscard]] std::int64_t integer(const char* key, std::int64_t low, std::int64_t high) const;
  [[nodiscard]] std::vector<std::int64_t> integers(const char* key, std::size_t most) const;
  [[nodiscard]] double number(const char* key, double low, double high) const;
  [[nodiscard]] std::vector<double> numbers(const char* key, double low) const;
  [[nodiscard]] std::string text(const char* key) const;
  [[nodiscard]] std::vector<std::string> texts(const char* key, std::size_t most) const;
  [[nodiscard]] bool boolean(const char* key) const;
  [[nodiscard]] bool boolean_or(const char* key, bool otherwise) const;
  // Of a run: IoError where it is of another tool than `tool`, or of a newer version.
  void check_run(const char* format, std::int64_t version, std::string_view tool) const;
  // A member as it is.
  [[nodiscard]] const Json& at(const char* key) const;

  [[noreturn]] void fail(std::string_view what, std::string_view expected) const;

 private:
  [[nodiscard]] std::string full(const char* key) const;
  [[nodiscard]] const Json& array(const char* key, std::size_t most) const;
  [[nodiscard]] std::int64_t as_integer(const Json& value, const std::string& name,
                                        std::int64_t low, std::int64_t high) const;
  [[nodiscard]] double as_number(const Json& value, const std::string& name, double low,
                                 double high) const;
  [[nodiscard]] std::string as_text(const Json& value, const std::string& name) const;

  const Json& object_;
  std::string path_;
  std::string name_;
};

}  // namespace tensorgrad::cli
