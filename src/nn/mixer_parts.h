// SPDX-License-Identifier: MIT
// Helpers for the mixers of language models.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "tensorgrad/error.h"
#include "tensorgrad/nn/init.h"
#include "tensorgrad/nn/linear.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

// Returns a layer whose weight is uniform within +-1/sqrt(in * residuals).
inline Linear scaled_linear(std::int64_t in, std::int64_t out, std::int64_t residuals, Loc loc,
                            bool bias = false) {
  Linear made(in, out, bias, loc);
  const double bound = 1 / std::sqrt(static_cast<double>(in * residuals));
  made.weight = Parameter({out, in}, init::uniform(-bound, bound), loc);
  return made;
}

// Throws ShapeError if x is not [B, L, width].
inline void demand_width(const char* what, const Tensor& x, std::int64_t width, Loc loc) {
  if (x.rank(loc) == 3 && x.size(-1, loc) == width) return;
  throw ShapeError(std::string(what) + ": expected [B, L, " + std::to_string(width) + "], got " +
                       to_string(x.shape(loc)),
                   loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
