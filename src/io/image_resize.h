// SPDX-License-Identifier: MIT
// Pictures of another size, in integers: the same bytes on every machine.
#pragma once

#include <cstdint>

#include "tensorgrad/data/images.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// Each axis by itself: made smaller, a pixel is the mean of the area that it covers; made larger,
// it lies on the line between the two pixels whose centres are next to its own. Sizes are 1 to
// kMostImageSide. The picture is stretched to fill the new size.
Image resized(const Image& image, std::int64_t height, std::int64_t width);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
