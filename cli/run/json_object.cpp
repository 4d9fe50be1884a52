// SPDX-License-Identifier: MIT
#include "run/json_object.h"

#include <charconv>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "classify/fingerprint.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cli {

constexpr int kDeepestJson = 64;

nlohmann::ordered_json read_json_file(const std::string& path, std::uint64_t max_bytes) {
  const std::vector<std::byte> bytes = read_file(path, max_bytes);
  const auto* const begin = reinterpret_cast<const char*>(bytes.data());
  try {
    // Recursive functions, such as dump(), need stack memory for each level.
    const auto shallow = [&](int depth, JsonObject::Json::parse_event_t, JsonObject::Json&) {
      if (depth <= kDeepestJson) return true;
      throw IoError(path + ": nested too deeply");
    };
    return JsonObject::Json::parse(begin, begin + bytes.size(), shallow);
  } catch (const JsonObject::Json::parse_error& error) {
    throw IoError(fmt::format("{}: invalid JSON at byte {}", path, error.byte));
  } catch (const JsonObject::Json::out_of_range&) {
    throw IoError(path + ": a number is too large");
  }
}

namespace {

constexpr const char* kChecksumName = "checksum";
constexpr const char* kBytesName = "bytes";  // of a path

// Of the values, not of the text: white space and the order of members may change.
std::string checksum_of(const JsonObject::Json& object) {
  nlohmann::json sorted = nlohmann::json::parse(object.dump());
  sorted.erase(kChecksumName);
  const std::string text = sorted.dump();
  Fingerprint print;
  print.add(text.data(), text.size());
  return print.text();
}

}  // namespace

std::string with_checksum(nlohmann::ordered_json object) {
  // What is not UTF-8 is replaced, so that the file can be read.
  using Json = nlohmann::ordered_json;
  object = Json::parse(object.dump(-1, ' ', false, Json::error_handler_t::replace));
  object[kChecksumName] = checksum_of(object);
  return object.dump(2) + "\n";
}

nlohmann::ordered_json path_json(const std::string& path) {
  using Json = nlohmann::ordered_json;
  try {
    (void)Json(path).dump();
    return path;
  } catch (const Json::type_error&) {  // not UTF-8
    std::string digits;
    for (const char c : path) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return {{kBytesName, digits}};
  }
}

JsonObject::JsonObject(const Json& object, std::string path, std::string name)
    : object_(object), path_(std::move(path)), name_(std::move(name)) {
  if (!object_.is_object()) fail(name_.empty() ? "top level" : name_, "expected an object");
}

JsonObject JsonObject::object(const char* key) const { return {at(key), path_, full(key)}; }

std::int64_t JsonObject::integer(const char* key, std::int64_t low, std::int64_t high) const {
  return as_integer(at(key), full(key), low, high);
}

std::vector<std::int64_t> JsonObject::integers(const char* key, std::size_t most) const {
  std::vector<std::int64_t> values;
  for (const Json& each : array(key, most)) {
    values.push_back(as_integer(each, full(key), 1, kMaxCount));
  }
  return values;
}

double JsonObject::number(const char* key, double low, double high) const {
  return as_number(at(key), full(key), low, high);
}

std::vector<double> JsonObject::numbers(const char* key, double low) const {
  std::vector<double> values;
  for (const Json& each : array(key, kMaxCount)) {
    values.push_back(as_number(each, full(key), low, 1e300));
  }
  return values;
}

std::string JsonObject::text(const char* key) const { return as_text(at(key), full(key)); }

std::vector<std::string> JsonObject::texts(const char* key, std::size_t most) const {
  std::vector<std::string> values;
  for (const Json& each : array(key, most)) values.push_back(as_text(each, full(key)));
  return values;
}

std::string JsonObject::path(const char* key) const { return as_path(at(key), full(key)); }

std::vector<std::string> JsonObject::paths(const char* key, std::size_t most) const {
  std::vector<std::string> values;
  for (const Json& each : array(key, most)) values.push_back(as_path(each, full(key)));
  return values;
}

std::map<std::string, std::string> JsonObject::texts_by_name(const char* key) const {
  std::map<std::string, std::string> values;
  if (!object_.contains(key)) return values;
  if (!at(key).is_object()) fail(full(key), "expected an object");
  for (const auto& [name, value] : at(key).items())
    values[name] = as_text(value, full(key) + "." + name);
  return values;
}

double JsonObject::number_or(const char* key, double low, double high, double otherwise) const {
  return object_.contains(key) ? number(key, low, high) : otherwise;
}

std::string JsonObject::text_or(const char* key, const std::string& otherwise) const {
  return object_.contains(key) ? text(key) : otherwise;
}

void JsonObject::check_checksum() const {
  const std::string expected = text_or(kChecksumName, "none");
  if (expected == "none") return;
  const std::string got = checksum_of(object_);
  if (got == expected) return;
  throw IoError(fmt::format(
      "{}: differs from its checksum: expected {}, got {}; the file is damaged (if you edited it, "
      "set \"checksum\" to \"none\")",
      path_, expected, got));
}

bool JsonObject::boolean(const char* key) const {
  const Json& value = at(key);
  if (!value.is_boolean()) fail(full(key), "expected true or false");
  return value.get<bool>();
}

bool JsonObject::boolean_or(const char* key, bool otherwise) const {
  return object_.contains(key) ? boolean(key) : otherwise;
}

void JsonObject::check_run(const char* format, std::int64_t version, std::string_view tool) const {
  if (const std::string got = text("format"); got != format) {
    fail("format", fmt::format("expected \"{}\", got \"{}\": not a run of {}", format, got, tool));
  }
  if (integer("version", 1, INT64_MAX) != version) {
    fail("version", fmt::format("expected {}; the run was written by a newer tg", version));
  }
}

void JsonObject::fail(std::string_view what, std::string_view expected) const {
  throw IoError(fmt::format("{}: {}: {}", path_, what, expected));
}

std::string JsonObject::full(const char* key) const {
  return name_.empty() ? key : name_ + "." + key;
}

const JsonObject::Json& JsonObject::at(const char* key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) fail(full(key), "missing");
  return *found;
}

const JsonObject::Json& JsonObject::array(const char* key, std::size_t most) const {
  const Json& value = at(key);
  if (!value.is_array() || value.size() > most) {
    fail(full(key), fmt::format("expected an array of at most {} elements", most));
  }
  return value;
}

std::int64_t JsonObject::as_integer(const Json& value, const std::string& name, std::int64_t low,
                                    std::int64_t high) const {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  if (!fits || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
    fail(name, fmt::format("expected an integer from {} to {}", low, high));
  }
  return value.get<std::int64_t>();
}

double JsonObject::as_number(const Json& value, const std::string& name, double low,
                             double high) const {
  const double x = value.is_number() ? value.get<double>() : NAN;
  if (!(x >= low && x <= high)) {
    fail(name, fmt::format("expected a number from {} to {}", low, high));
  }
  return x;
}

std::string JsonObject::as_text(const Json& value, const std::string& name) const {
  if (!value.is_string()) fail(name, "expected a string");
  return value.get<std::string>();
}

std::string JsonObject::as_path(const Json& value, const std::string& name) const {
  if (!value.is_object()) return as_text(value, name);
  const std::string digits = JsonObject(value, path_, name).text(kBytesName);
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned byte = 0;
    const auto [stop, error] = std::from_chars(&digits[i], &digits[i] + 2, byte, 16);
    if (error != std::errc() || stop != &digits[i] + 2 || byte == 0) break;
    bytes += static_cast<char>(byte);
  }
  if (bytes.empty() || bytes.size() * 2 != digits.size())
    fail(name + "." + kBytesName, "expected the bytes of a path in hexadecimal");
  return bytes;
}

}  // namespace tensorgrad::cli
