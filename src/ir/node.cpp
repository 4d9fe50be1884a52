// SPDX-License-Identifier: MIT
// Types and attributes of nodes.
#include "ir/node.h"

#include <algorithm>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

std::string to_string(const Type& type) {
  return std::string(to_string(type.dtype)) + to_string(type.shape);
}

Attrs::Attrs(std::initializer_list<std::pair<std::string, AttrValue>> items) {
  for (const auto& [key, value] : items) set(key, value);
}

void Attrs::set(const std::string& key, AttrValue value) {
  const auto at =
      std::lower_bound(items_.begin(), items_.end(), key,
                       [](const auto& item, const std::string& k) { return item.first < k; });
  if (at != items_.end() && at->first == key) {
    at->second = std::move(value);
  } else {
    items_.insert(at, {key, std::move(value)});
  }
}

const AttrValue* Attrs::find(std::string_view key) const {
  for (const auto& [name, value] : items_) {
    if (name == key) return &value;
  }
  return nullptr;
}

template <class T>
const T& Attrs::get(std::string_view key) const {
  const AttrValue* value = find(key);
  if (value == nullptr) throw InternalError("attribute '" + std::string(key) + "' is missing");
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) {
    throw InternalError("attribute '" + std::string(key) + "' has another type than expected");
  }
  return *typed;
}

std::int64_t Attrs::integer(std::string_view key) const { return get<std::int64_t>(key); }
double Attrs::number(std::string_view key) const { return get<double>(key); }
const std::string& Attrs::text(std::string_view key) const { return get<std::string>(key); }
const std::vector<std::int64_t>& Attrs::list(std::string_view key) const {
  return get<std::vector<std::int64_t>>(key);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
