// SPDX-License-Identifier: MIT
// What a public class holds of an object that is its own.
#pragma once

#include <memory>
#include <utility>

namespace tensorgrad::detail {

[[noreturn]] void throw_moved_from(const char* what);

// A shared object. After it was moved from it has none, and every use throws UserError, which says
// `what` was moved.
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

}  // namespace tensorgrad::detail
