// SPDX-License-Identifier: MIT
// A JSON tree whose destructor does not allocate.
#pragma once

#include <utility>

#include <nlohmann/json.hpp>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// The destructor of a nlohmann::json with children allocates, and terminates the process if that
// fails. This one removes the children first, from the leaves up. Its recursion is as deep as the
// tree.
template <class Json>
class OwnedJson {
 public:
  OwnedJson() = default;
  explicit OwnedJson(Json root) : root_(std::move(root)) {}
  ~OwnedJson() { clear(root_); }
  OwnedJson(const OwnedJson&) = delete;
  OwnedJson& operator=(const OwnedJson&) = delete;
  OwnedJson(OwnedJson&& other) noexcept : root_(std::move(other.root_)) {}
  OwnedJson& operator=(OwnedJson&& other) noexcept {
    std::swap(root_, other.root_);
    return *this;
  }

  [[nodiscard]] Json& operator*() { return root_; }
  [[nodiscard]] const Json& operator*() const { return root_; }

 private:
  static void clear(Json& json) noexcept {
    if (!json.is_structured()) return;
    for (Json& child : json) clear(child);
    json.clear();
  }

  Json root_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
