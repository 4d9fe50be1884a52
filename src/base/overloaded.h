// SPDX-License-Identifier: MIT
// A visitor for std::visit.
#pragma once

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A visitor made of one lambda per alternative. Does not compile if an alternative has none.
template <class... Lambdas>
struct Overloaded : Lambdas... {
  using Lambdas::operator()...;
};
template <class... Lambdas>
Overloaded(Lambdas...) -> Overloaded<Lambdas...>;

}  // namespace tensorgrad::inline TENSORGRAD_ABI
