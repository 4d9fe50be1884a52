// SPDX-License-Identifier: MIT
// A std::variant whose copies may run out of memory.
#pragma once

#include <variant>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// libstdc++ never tests whether a std::variant of strings, vectors and pointers has a value. If its
// copy constructor throws, it therefore destroys a member that was never built. This one starts
// with a first alternative and assigns the copy, which builds the new member before it destroys
// the old one. The first alternative must be built without allocating.
template <class... Types>
class Variant : public std::variant<Types...> {
  using Base = std::variant<Types...>;

 public:
  using Base::Base;
  Variant() = default;
  Variant(const Variant& other) : Base() { Base::operator=(other); }
  Variant(Variant&& other) noexcept = default;
  Variant& operator=(const Variant& other) = default;
  Variant& operator=(Variant&& other) noexcept = default;
  ~Variant() = default;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
