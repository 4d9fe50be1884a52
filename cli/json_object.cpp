// SPDX-License-Identifier: MIT
#include "json_object.h"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

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
    values.push_back(as_integer(each, full(key), 1, kMostElements));
  }
  return values;
}

double JsonObject::number(const char* key, double low, double high) const {
  return as_number(at(key), full(key), low, high);
}

std::vector<double> JsonObject::numbers(const char* key, double low) const {
  std::vector<double> values;
  for (const Json& each : array(key, kMostElements)) {
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

}  // namespace tensorgrad::cli
