// SPDX-License-Identifier: MIT
// The kernel variants of one contraction: the default, chosen by the cost model, and other tiles. A
// device can time them.
#pragma once

#include <string>
#include <vector>

#include "codegen/wgsl/writer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct ContractionVariant {
  std::string name;  // "default", "tile 64", "subgroup_matrix 2"
  WgslKernel kernel;
};

// Returns a key for everything but the device that decides how fast each variant is: sizes, operand
// layout, and a hash of the default kernel's text without buffer offsets. Equal layers share a key.
// In "1x512x1024x256 kn 09af...", a is contiguous along k (else m) and b along n (else k).
std::string contraction_key(const Launch& launch, const WgslOptions& options);

// Returns the variant of this name. Its name is empty if the launch has no such variant.
ContractionVariant contraction_variant(const Launch& launch, const WgslOptions& options,
                                       const std::string& name);

// Returns all distinct variants, the default first. Skips variants that would take very long.
std::vector<ContractionVariant> contraction_variants(const Launch& launch,
                                                     const WgslOptions& options);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
