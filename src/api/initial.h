// SPDX-License-Identifier: MIT
// The elements that an Init stands for.
#pragma once

#include <span>

#include "tensorgrad/nn/module.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Throws ShapeError, `what` in front, where a parameter of that shape cannot begin so.
void check_initial(const std::string& what, const Init& init, const Shape& shape,
                   const SourceLocation& location);

// `values` is the whole parameter, row-major. The same for the same stream and seed.
void fill_initial(const Init& init, const Shape& shape, std::uint32_t stream, std::uint32_t seed,
                  std::span<float> values);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
