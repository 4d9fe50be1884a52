// SPDX-License-Identifier: MIT
// Image resizing in integer arithmetic, with identical results on every machine.
#pragma once

#include <cstdint>

#include "tensorgrad/data/images.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// Resizes each axis separately: by area averaging if it shrinks, otherwise by linear interpolation
// between the two nearest pixel centers. Sizes are 1 to kMaxImageSide. Does not keep the aspect
// ratio.
Image resized(const Image& image, std::int64_t height, std::int64_t width);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
