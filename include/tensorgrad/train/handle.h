// SPDX-License-Identifier: MIT
// Shared pointer with which public classes hold their implementation.
#pragma once

#include <memory>
#include <utility>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

// Throws UserError: the object, a `what`, was moved from.
[[noreturn]] void throw_moved_from(const char* what);

// Shared pointer to an implementation object. Moving from a handle empties it; any later use throws
// UserError naming `what`, the public class.
template <class T>
class Handle {
 public:
  Handle(std::shared_ptr<T> object, const char* what) : object_(std::move(object)), what_(what) {}
  T& operator*() const { return *shared(); }
  T* operator->() const { return shared().get(); }
  [[nodiscard]] const std::shared_ptr<T>& shared() const {
    if (object_ == nullptr) throw_moved_from(what_);
    return object_;
  }

 private:
  std::shared_ptr<T> object_;
  const char* what_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
