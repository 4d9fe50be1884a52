// SPDX-License-Identifier: MIT
// Elements of initial values (Init).
#pragma once

#include <span>

#include "tensorgrad/nn/module.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Throws ShapeError, beginning with `what`, if `init` does not apply to a parameter of that shape.
void check_initial(const std::string& what, const Init& init, const Shape& shape,
                   const SourceLocation& location);

// Fills the whole parameter, row-major. Deterministic for equal stream and seed.
void fill_initial(const Init& init, const Shape& shape, std::uint32_t stream, std::uint32_t seed,
                  std::span<float> values);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
