// SPDX-License-Identifier: MIT
#include "lm/gguf_fields.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <type_traits>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::lm {

const GgufValue* GgufFields::find(const std::string& key) const {
  const auto found = all_.find(prefix_ + key);
  return found == all_.end() ? nullptr : &found->second;
}

const GgufValue& GgufFields::at(const std::string& key) const {
  const GgufValue* const found = find(key);
  if (found == nullptr) fail(key, "is missing");
  return *found;
}

void GgufFields::fail(const std::string& key, const std::string& what) const {
  throw IoError(file_ + ": " + prefix_ + key + ": " + what);
}

std::int64_t GgufFields::integer(const std::string& key, std::int64_t least,
                                 std::int64_t most) const {
  return std::visit(
      [&]<class T>(const T& value) -> std::int64_t {
        const std::string range =
            "expected an integer from " + std::to_string(least) + " to " + std::to_string(most);
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          if (std::cmp_less(value, least) || std::cmp_greater(value, most))
            fail(key, range + ", got " + std::to_string(value));
          return static_cast<std::int64_t>(value);
        } else {
          fail(key, range + ", got a value of another type");
        }
      },
      at(key));
}

double GgufFields::number(const std::string& key) const {
  return std::visit(
      [&]<class T>(const T& value) -> double {
        if constexpr (std::is_floating_point_v<T>) {
          if (std::isfinite(value) && value >= 0) return static_cast<double>(value);
        }
        fail(key, "expected a finite float of 0 or more");
      },
      at(key));
}

bool GgufFields::boolean_or(const std::string& key, bool usual) const {
  if (!has(key)) return usual;
  const auto* const value = std::get_if<bool>(&at(key));
  if (value == nullptr) fail(key, "expected a boolean");
  return *value;
}

const std::string& GgufFields::text(const std::string& key) const {
  const auto* const value = std::get_if<std::string>(&at(key));
  if (value == nullptr) fail(key, "expected a string");
  return *value;
}

void GgufFields::known(std::initializer_list<const char*> keys) const {
  for (auto each = all_.lower_bound(prefix_);
       each != all_.end() && each->first.starts_with(prefix_); ++each) {
    const std::string key = each->first.substr(prefix_.size());
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      fail(key, "is not supported, so the model might not be reproduced exactly");
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::lm
